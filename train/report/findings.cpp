#include "train/report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>

#include "train/count_text.h"
#include "train/loop/metrics.h"

namespace kolo::train {
namespace {

// A model that has not learned yet is near the loss of a guess.
constexpr double kAboveGuess = 1.05;

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string finding_on_replicas(const Report& report) {
  if (report.runs.front().workers == 1) return "";  // there is nothing to compare
  std::int64_t checks = 0;
  std::vector<std::string> at_ends;
  for (const RunRecord& run : report.runs) {
    checks += run.replica_checks;
    if (!run.difference.empty() && run.seed == report.runs.front().seed) at_ends.push_back(run.arm);
  }
  if (checks == 0) return "";
  std::string text = fmt::format(
      "The replicas were compared {} time{} (by a hash of all parameters) and were always equal.",
      checks, checks == 1 ? "" : "s");
  if (!at_ends.empty()) {
    text += fmt::format(" Those of {} differ during an epoch, and were compared at its end only.",
                        joined(at_ends));
  }
  return text;
}

// Of the runs with the seed of `one`, the first that should end with the bits of others; `one` if
// there is none.
const RunRecord& reference_of(const Report& report, const RunRecord& one) {
  const auto found = std::ranges::find_if(report.runs, [&one](const RunRecord& run) {
    return run.is_kolo() && run.seed == one.seed && run.difference.empty();
  });
  return found == report.runs.end() ? one : *found;
}

// Compares the final weights of all of kolo's arms with those of the first one of the same seed;
// empty if there is one arm.
std::string finding_on_weights(const Report& report) {
  const RunRecord* first = nullptr;  // the seed's reference_of()
  std::set<std::string> differs;
  std::map<std::string, std::string> differs_by_rule;  // arm, and how
  double widest = 0;
  for (const RunRecord& run : report.runs) {
    if (!run.is_kolo()) continue;
    if (first == nullptr || run.seed != first->seed) first = &reference_of(report, run);
    if (!run.difference.empty() && run.final_hash != first->final_hash) {
      differs_by_rule[run.arm] = run.difference;
      continue;
    }
    if (run.final_hash != first->final_hash) differs.insert(run.arm);
    widest =
        std::max(widest, std::abs(run.epochs.back().train_loss - first->epochs.back().train_loss));
  }
  std::vector<std::string> equal, different;
  for (const RunRecord& run : report.runs) {
    if (run.seed != report.runs.front().seed || differs_by_rule.contains(run.arm)) continue;
    if (!run.is_kolo()) continue;
    (differs.contains(run.arm) ? different : equal).push_back(run.arm);
  }
  std::string by_rule;
  if (!differs_by_rule.empty()) {
    std::vector<std::string> arms;
    for (const auto& [arm, how] : differs_by_rule) arms.push_back(fmt::format("{} ({})", arm, how));
    by_rule = fmt::format("{} train{} in another way, so other parameters are expected there.",
                          joined(arms), arms.size() == 1 ? "s" : "");
  }
  if (equal.size() + different.size() < 2) return by_rule;
  if (!by_rule.empty()) by_rule += " ";
  if (different.empty()) {
    return fmt::format("{}The final parameters are equal, bit for bit, in all {}arms ({}).",
                       by_rule, by_rule.empty() ? "" : "other ", joined(equal));
  }
  const bool has_pipeline =
      std::ranges::any_of(report.runs, [](const RunRecord& run) { return run.stages > 0; });
  return by_rule + fmt::format(
                       "The final parameters of {} differ from those of {}: their sums are made in "
                       "another order, "
                       "and training carries the rounding on, as in two runs of one program with 1 "
                       "and 2 threads. "
                       "That is no property of a strategy. The training losses of the last epoch "
                       "differ by at most "
                       "{:.2g}{}.",
                       joined(different), joined(equal), widest,
                       // A pipeline sums by micro-batch, the others by rank.
                       has_pipeline ? ""
                                    : "; with --reproducibility invariant the final parameters are "
                                      "equal");
}

// Spread of iteration times in a run. All iterations do the same work, so on an idle machine they
// take about the same time.
struct Times {
  const RunRecord* run = nullptr;
  double low = 0, high = 0;  // 10th and 90th percentile, seconds

  double width() const { return high / low; }
};

// For each arm, in order, the run with the widest spread.
std::vector<Times> widest_of_arms(const Report& report) {
  std::vector<Times> widest;
  for (const RunRecord& run : report.runs) {
    const std::vector<double> counted = run.counted_seconds();
    const Times times{&run, quantile(counted, 0.1), quantile(counted, 0.9)};
    const auto of_arm =
        std::ranges::find(widest, run.arm, [](const Times& t) { return t.run->arm; });
    if (of_arm == widest.end()) {
      widest.push_back(times);
    } else if (times.width() > of_arm->width()) {
      *of_arm = times;
    }
  }
  return widest;
}

// Warns if the times of an arm vary so much that the machine was probably busy; otherwise empty.
std::string finding_on_times(const Report& report) {
  constexpr double kQuiet = 1.5;  // seen on two idle cores: 1.05 to 1.2
  const bool has_seeds = report.runs.front().seed != report.runs.back().seed;
  std::vector<std::string> arms;
  for (const Times& times : widest_of_arms(report)) {
    if (times.high < kQuiet * times.low) continue;
    const RunRecord& run = *times.run;
    arms.push_back(fmt::format("of {} {}from {:.0f} to {:.0f} ms",
                               has_seeds ? fmt::format("{}, seed {},", run.arm, run.seed) : run.arm,
                               arms.empty() ? "took " : "", 1e3 * times.low, 1e3 * times.high));
  }
  if (arms.empty()) return "";
  return fmt::format(
      "WARNING: the iterations {} (10th to 90th percentile{}): another program used the machine, "
      "or "
      "ranks had to share a core; repeat the run before you compare speeds.",
      fmt::join(arms, "; "), has_seeds ? ", for each arm the seed with the widest spread" : "");
}

std::string name_of(const RunRecord& run, const Report& report) {
  const bool has_seeds = report.runs.front().seed != report.runs.back().seed;
  return has_seeds ? fmt::format("{}, seed {}", run.arm, run.seed) : run.arm;
}

// Warns if forward took different times in the runs; otherwise empty. Forward is the same work in
// every run, and runs without communication, so a difference comes from the machine. (Backward may
// be slower because communication uses cores or memory, which is a property of the strategy.)
std::string finding_on_forward(const Report& report) {
  constexpr double kSame = 1.15;
  // PyTorch's forward takes another time, and a stage of a pipeline has other work.
  std::vector<RunRecord> runs;
  std::ranges::copy_if(report.runs, std::back_inserter(runs),
                       [](const RunRecord& run) { return run.is_kolo() && run.stages == 0; });
  if (runs.empty()) return "";
  const auto [quick, slow] =
      std::ranges::minmax_element(runs, [](const RunRecord& left, const RunRecord& right) {
        return left.forward_seconds() < right.forward_seconds();
      });
  if (slow->forward_seconds() <= kSame * quick->forward_seconds()) return "";
  return fmt::format(
      "WARNING: the machine was not equally fast for all runs: forward, the same work in each, "
      "took {:.1f} ms "
      "in {} and {:.1f} ms in {} (medians){}; repeat the runs before you compare speeds; with "
      "shorter epochs (--train-size) the arms take turns more often.",
      1e3 * quick->forward_seconds(), name_of(*quick, report), 1e3 * slow->forward_seconds(),
      name_of(*slow, report),
      slow->servers > 0 ? ", or its dedicated servers used the workers' cores" : "");
}

// A worker for which all others of its run waited. `seconds` is 0 if there is none.
struct Wait {
  const RunRecord* run = nullptr;
  const RankRecord* rank = nullptr;
  double seconds = 0;  // of an iteration

  double share() const { return seconds > 0 ? seconds / rank->step_seconds : 0; }
};

double exposed_of(const RankRecord& rank) {
  return rank.parts[static_cast<std::size_t>(Part::exposed)];
}

// Finds the worker for which all others waited longest. Compared with it, each other worker
// computes for less time, and communicates for more, since it waits. The least of these differences
// is the time for which all others waited. If two workers are equally slow, it is 0.
Wait longest_wait(const RunRecord& run) {
  Wait longest{&run};
  for (const RankRecord& slow : run.ranks) {
    double seconds = INFINITY;
    for (const RankRecord& other : run.ranks) {
      if (!slow.is_worker || !other.is_worker || other.rank == slow.rank) continue;
      const double computed =
          slow.step_seconds - exposed_of(slow) - (other.step_seconds - exposed_of(other));
      seconds = std::min({seconds, computed, exposed_of(other) - exposed_of(slow)});
    }
    if (seconds < INFINITY && seconds > longest.seconds) {
      longest.rank = &slow;
      longest.seconds = seconds;
    }
  }
  return longest;
}

// "ring: rank 2, whose backward took 31.0 ms, the others' 20.2 ms on average". Names the part of an
// iteration with the largest difference from the mean of the other workers.
std::string wait_text(const Wait& wait, const std::string& name) {
  std::size_t part = 0;
  double largest = -INFINITY, theirs = 0;
  for (std::size_t i = 0; i < kPartNames.size(); ++i) {
    if (i == static_cast<std::size_t>(Part::exposed)) continue;
    double sum = 0;
    for (const RankRecord& other : wait.run->ranks)
      sum += other.is_worker && other.rank != wait.rank->rank ? other.parts[i] : 0;
    const double mean = sum / (wait.run->workers - 1);
    if (wait.rank->parts[i] - mean <= largest) continue;
    largest = wait.rank->parts[i] - mean;
    theirs = mean;
    part = i;
  }
  return fmt::format("{}: rank {}, whose {} took {:.1f} ms, the others' {:.1f} ms on average", name,
                     wait.rank->rank, kPartNames[part], 1e3 * wait.rank->parts[part], 1e3 * theirs);
}

// Warns of a worker for which all others waited; otherwise empty. For each arm, names the seed with
// the longest wait. Arms whose workers do not wait for each other in each iteration have no such
// warning.
std::string finding_on_waiting(const Report& report) {
  constexpr double kShort =
      0.1;                    // of an iteration; seen with equal work on two busy cores: below 0.07
  std::vector<Wait> longest;  // of each arm
  for (const RunRecord& run : report.runs) {
    // By design all others wait for rank 0 of dataparallel, which has the optimizer alone, and for
    // the stage of a pipeline with the most work.
    if (!run.difference.empty() || run.arm == "dataparallel" || run.stages > 0) continue;
    const Wait wait = longest_wait(run);
    if (wait.share() <= kShort) continue;
    const auto of_arm =
        std::ranges::find(longest, run.arm, [](const Wait& w) { return w.run->arm; });
    if (of_arm == longest.end()) {
      longest.push_back(wait);
    } else if (wait.share() > of_arm->share()) {
      *of_arm = wait;
    }
  }
  if (longest.empty()) return "";
  std::vector<std::string> texts;
  for (const Wait& wait : longest) texts.push_back(wait_text(wait, name_of(*wait.run, report)));
  return fmt::format(
      "WARNING: one worker kept all others waiting for more than {:.0f} % of an iteration ({}). "
      "Look on its host for other programs, fewer cores or slower data.",
      100 * kShort, fmt::join(texts, "; "));
}

// Warns that --profile made the runs slower; empty without --profile.
std::string finding_on_profile(const Report& report) {
  if (report.runs.front().layers.empty()) return "";
  return "WARNING: --profile read the clock at each layer, and so made the runs slower; compare "
         "speeds without --profile.";
}

// Warns by name of arms with more processes than cores; otherwise empty.
std::string finding_on_cores(const Report& report) {
  const auto known = report.machine.find("cores");
  const int cores = known == report.machine.end() ? 0 : std::atoi(known->second.c_str());
  std::vector<std::string> arms;
  for (const RunRecord& run : report.runs) {
    const int processes = run.workers + run.servers;
    if (run.seed == report.runs.front().seed && processes > cores)
      arms.push_back(fmt::format("{} ({})", run.arm, processes));
  }
  if (arms.empty() || cores == 0) return "";
  return fmt::format(
      "WARNING: more processes than the {} of this machine: {}. They share cores, so their speeds "
      "are lower than on hosts of their own.",
      count_text(cores, "core"), joined(arms));
}

// Warns of arms whose last training loss is above that of a guess; otherwise empty.
std::string finding_on_losses(const Report& report) {
  std::vector<std::string> arms;
  double guess = 0;
  for (const RunRecord& run : report.runs) {
    if (run.classes < 2) continue;
    guess = std::log(run.classes);
    const double last = run.epochs.back().train_loss;
    // Before its first update a model guesses, or is worse.
    const double first = run.step_losses.empty() ? 0 : run.step_losses.front();
    if (last > std::max(kAboveGuess * guess, first))
      arms.push_back(fmt::format("{} ({:.3g})", name_of(run, report), last));
  }
  if (arms.empty()) return "";
  const bool is_compressed = report.runs[0].terms.contains("gradients are sent as");
  return fmt::format(
      "WARNING: the training loss of the last epoch is above that of a guess ({:.3g}): {}. The "
      "training has diverged; lower --lr, or give it a longer --warmup-epochs{}.",
      guess, joined(arms), is_compressed ? ", or compare with --compress none" : "");
}

// Warns of test losses that are not numbers; otherwise empty.
std::string finding_on_tests(const Report& report) {
  for (const RunRecord& run : report.runs) {
    for (const EpochRecord& epoch : run.epochs) {
      if (epoch.test_note.empty()) continue;
      return fmt::format("WARNING: the test loss of {} after epoch {} is no number: {}.",
                         name_of(run, report), epoch.epoch, epoch.test_note);
    }
  }
  return "";
}

// Compares the loss of the first iteration between kolo and PyTorch. It depends only on weights,
// samples and their order, so it shows whether these were the same. Empty without both programs.
std::string finding_on_first_losses(const Report& report) {
  constexpr double kRounding = 1e-3;    // seen with ResNet-50: 1e-5
  std::map<std::uint64_t, double> own;  // seed to kolo's loss
  for (const RunRecord& run : report.runs) {
    if (run.is_kolo() && !run.step_losses.empty())
      own.try_emplace(run.seed, run.step_losses.front());
  }
  std::set<std::string> arms, others;
  double widest = 0;
  for (const RunRecord& run : report.runs) {
    const auto kolo = own.find(run.seed);
    if (run.is_kolo() || run.step_losses.empty() || kolo == own.end()) continue;
    const double difference = std::abs(run.step_losses.front() / kolo->second - 1);
    widest = std::max(widest, difference);
    (difference <= kRounding ? arms : others).insert(run.arm);
  }
  if (!others.empty())
    return fmt::format(
        "WARNING: the loss of the first iteration, before any update, differs by {:.2g} % between "
        "kolo and {}: they did not train the same model on the same samples.",
        100 * widest, fmt::join(others, ", "));
  if (arms.empty()) return "";
  return fmt::format(
      "PyTorch began with the same weights and samples: the loss of the first iteration differs by "
      "at most {:.2g} % between kolo and {}.",
      100 * widest, fmt::join(arms, ", "));
}

// The range of the last test accuracy over seeds, in percent.
struct Accuracies {
  std::string arm;
  bool is_kolo = true;
  double low = 0, high = 0;
  int runs = 0;
};

std::vector<Accuracies> accuracies_of(const Report& report) {
  std::vector<Accuracies> all;
  for (const RunRecord& run : report.runs) {
    const double last = 100 * run.epochs.back().test_accuracy;
    auto own = std::ranges::find(all, run.arm, &Accuracies::arm);
    if (own == all.end()) own = all.insert(all.end(), {run.arm, run.is_kolo(), last, last, 0});
    own->low = std::min(own->low, last);
    own->high = std::max(own->high, last);
    ++own->runs;
  }
  return all;
}

// Reports whether the accuracies of kolo and of PyTorch overlap. Empty without both programs, and
// for one seed.
std::string finding_on_accuracies(const Report& report) {
  std::vector<std::string> ranges;
  double kolo_low = INFINITY, kolo_high = -INFINITY, low = INFINITY, high = -INFINITY;
  int seeds = 0;
  for (const Accuracies& one : accuracies_of(report)) {
    ranges.push_back(fmt::format("{} {:.2f} to {:.2f} %", one.arm, one.low, one.high));
    double& least = one.is_kolo ? kolo_low : low;
    double& most = one.is_kolo ? kolo_high : high;
    least = std::min(least, one.low);
    most = std::max(most, one.high);
    seeds = std::max(seeds, one.runs);
  }
  if (seeds < 2 || kolo_high < 0 || high < 0) return "";
  const bool do_overlap = kolo_low <= high && low <= kolo_high;
  return fmt::format("Test accuracy over {} seeds: {}. The ranges of kolo and PyTorch {}.", seeds,
                     fmt::join(ranges, ", "), do_overlap ? "overlap" : "do not overlap");
}

// Empty without an arm of kolo: PyTorch counts no bytes.
std::string finding_on_bytes(const Report& report) {
  if (std::ranges::none_of(report.runs, &RunRecord::is_kolo)) return "";
  std::set<std::string> wrong;
  for (const RunRecord& run : report.runs) {
    if (run.is_kolo() && !run.bytes_match()) wrong.insert(run.arm);
  }
  const bool are_all = std::ranges::all_of(report.runs, &RunRecord::is_kolo);
  if (wrong.empty()) {
    return fmt::format("Every rank{} moved the bytes of its strategy's formula.",
                       are_all ? "" : " of kolo's arms");
  }
  return fmt::format("WARNING: the bytes moved differ from the formula in {}.",
                     fmt::join(wrong, ", "));
}

}  // namespace

std::vector<std::string> findings(const Report& report) {
  if (report.runs.empty())
    return {fmt::format("INCOMPLETE: no run has finished. {}", report.incomplete)};
  std::vector<std::string> sentences;
  constexpr std::int64_t kFew = 20;
  if (report.runs.front().counted_iterations < kFew) {
    sentences.push_back(
        fmt::format("WARNING: speeds and times come from {}, too few for a comparison.",
                    count_text(report.runs.front().counted_iterations, "counted iteration")));
  } else {
    for (std::string sentence :
         {finding_on_times(report), finding_on_forward(report), finding_on_waiting(report)}) {
      if (!sentence.empty()) sentences.push_back(std::move(sentence));
    }
  }
  if (!report.incomplete.empty()) {
    sentences.push_back(fmt::format("INCOMPLETE: only {} of the runs finished. {}",
                                    report.runs.size(), report.incomplete));
  }
  for (std::string sentence :
       {finding_on_profile(report), finding_on_cores(report), finding_on_losses(report),
        finding_on_tests(report), finding_on_first_losses(report), finding_on_accuracies(report),
        finding_on_replicas(report), finding_on_weights(report), finding_on_bytes(report)}) {
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace kolo::train
