#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "train/experiment/comparability.h"
#include "train/report/findings.h"
#include "train/report/profile.h"
#include "train/report/report.h"
#include "train/report/table.h"

namespace kolo::train {
namespace {

// The explanation of each number, printed below the table.
struct Meaning {
  const char* number;
  const char* how;
};
constexpr std::array<Meaning, 23> kMeanings{{
    {"a [b, c]", "the mean over two runs with different seeds, the smaller, the larger"},
    {"a ± b", "the mean over three or more runs with different seeds, the standard deviation"},
    {"seconds of training",
     "all iterations from the first, without start-up, evaluation and checks of the replicas"},
    {"images/s",
     "samples per second of the counted iterations, summed over workers. Not counted: the "
     "first {skipped} iterations, "
     "evaluation, and checks of the replicas. Each host: divided by the number of all ranks, as "
     "dedicated servers cost hosts too if each rank is a host"},
    {"iteration",
     "mean over the counted iterations and over workers, on the training thread, from requesting "
     "a batch to updated "
     "parameters; the parts add up to it. p10, median and p90 are those of rank 0's counted "
     "iterations"},
    {"data", "waiting for the next batch, which the loader's thread prepares"},
    {"forward, backward",
     "computing, without the communication that this thread does at the same time"},
    {"exposed communication",
     "the training thread's time for communication: starting exchanges, making progress "
     "inside backward, and "
     "waiting afterwards (or inside the next forward), also for a slower worker"},
    {"optimizer", "applying the update, or copying parameters that a server has updated"},
    {"hidden communication",
     "the time in which any bucket of the worker was in flight, minus exposed communication: the "
     "part that overlaps with backward; 0 if the worker sent nothing. If all cores are busy it "
     "still has a cost: backward is slower"},
    {"iteration predicted, exposed predicted",
     "the measured times without exposed communication, and communication by a model of the bytes "
     "by the formula, the rate and the latency of --shape (experiment/prediction.h); the error is "
     "relative to the measured time. Absent without a shape, or with one that differs between "
     "pairs of "
     "ranks: then nothing is known of the network, and nothing is estimated"},
    {"MiB sent",
     "payload bytes that the transport counted in the exchange of gradients, per iteration, "
     "without headers; below it the bytes by the "
     "formula"},
    {"cores busy", "CPU seconds of the processes per second of training: the cores that they use"},
    {"peak memory", "the largest resident memory of one process"},
    {"optimizer's state",
     "the numbers that the optimizer keeps for each parameter, such as momentum"},
    {"updates skipped",
     "the sums of an iteration overflowed float16, so no parameter was changed and the loss scale "
     "was halved"},
    {"bubble",
     "of a pipeline: the part of an iteration in which a stage waits for other stages, as the mean "
     "over all stages; communication between stages counts. The row below is the ideal without "
     "communication: s stages of equal work and m micro-batches wait (s - 1) / (m + s - 1)"},
    {"workers idle",
     "the part of an iteration in which a worker only waits: exposed communication without the "
     "part "
     "inside backward"},
    {"servers idle", "the part of an iteration in which a dedicated server waits for messages"},
    {"staleness",
     "of arms that apply gradients as they arrive: the updates of a key between a worker's pull of "
     "it and its gradient. Below it the gradients by number of updates. Dropped: came after the "
     "end of their iteration (backup)"},
    {"trained by",
     "torch-ddp, torch-ddp-kolo: PyTorch's DistributedDataParallel over gloo or kolo's backend. "
     "torch-ps: reduce, step, broadcast over gloo. They begin with kolo's weights, samples, order "
     "and learning rates. Exposed communication of torch-ddp is the time of backward after the "
     "last gradient, that of torch-ps the time of reduce and broadcast. gloo counts no bytes"},
    {"after S s of training",
     "the arms at equal time: test accuracy of the last evaluated epoch that had ended when the "
     "fastest run ended its training"},
    {"losses, accuracies",
     "training: over the epoch's samples, during training. Test: each test sample counts once, "
     "for any number of "
     "workers; running statistics of batch norm are rank 0's, as in PyTorch's DDP. Equal "
     "hashes of the final weights mean "
     "equal weights"},
}};

constexpr const char* kSameForAll =
    "Every arm ran in new processes, with the arms of a seed in turns of an epoch each, and with "
    "the "
    "same model, initial "
    "weights, order of data, "
    "optimizer, precision, iterations, threads and transport. kolo-train does not compare runs "
    "that differ in any of "
    "these.";

constexpr const char* kOneMachine =
    "Ranks on one machine communicate through its memory, and servers share its cores with the "
    "workers. So the table shows the costs of the "
    "strategies here, not on a network.";

constexpr const char* kTorchDiffers =
    " Arms that train in PyTorch have its kernels, its buckets and a transport of their own.";

std::string meaning_markdown(const Report& report) {
  const bool has_torch = std::ranges::any_of(
      report.runs, [&](const RunRecord& run) { return run.program != report.runs[0].program; });
  std::string text =
      fmt::format("## What the numbers mean\n\n{}{}\n\n| number | how it is made |\n|---|---|\n",
                  kSameForAll, has_torch ? kTorchDiffers : "");
  for (const Meaning& meaning : kMeanings) {
    text += fmt::format(
        "| {} | {} |\n", meaning.number,
        fmt::format(fmt::runtime(meaning.how), fmt::arg("skipped", report.skipped_iterations())));
  }
  return text + fmt::format("\n{}\n", kOneMachine);
}

std::string table_markdown(const Table& table) {
  std::string text = fmt::format("| |{}|\n|---|{}\n", fmt::join(table.columns, "|"), [&] {
    std::string dashes;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      dashes += "---:|";
    }
    return dashes;
  }());
  for (const TableRow& row : table.rows) {
    const bool is_part = row.label.starts_with("  ");
    const std::string label =
        is_part ? fmt::format("&nbsp;&nbsp;{}", row.label.substr(2)) : row.label;
    text += fmt::format("| {} | {} |\n", label, fmt::join(row.cells, " | "));
  }
  return text;
}

std::string terms_markdown(const Report& report) {
  std::string text = "| the same in every arm | |\n|---|---|\n";
  for (const auto& term : shared_terms(report.runs)) {
    text += fmt::format("| {} | {} |\n", term.first, term.second);
  }
  return text;
}

std::string epochs_markdown(const Report& report) {
  std::string text =
      "| arm | seed | epoch | training loss | training accuracy, % | test loss | test accuracy, % "
      "| "
      "seconds of training |\n|---|---:|---:|---:|---:|---:|---:|---:|\n";
  const auto add = [&](const std::string& arm, std::uint64_t seed, const EpochRecord& epoch) {
    const std::string test = epoch.is_evaluated ? fmt::format("{:.4f} | {:.2f}", epoch.test_loss,
                                                              100 * epoch.test_accuracy)
                                                : "- | -";
    text +=
        fmt::format("| {} | {} | {} | {:.4f} | {:.2f} | {} | {:.1f} |\n", arm, seed, epoch.epoch,
                    epoch.train_loss, 100 * epoch.train_accuracy, test, epoch.training_seconds);
  };
  for (const RunRecord& run : report.runs) {
    for (const EpochRecord& epoch : run.epochs) add(run.arm, run.seed, epoch);
  }
  for (const UnfinishedRun& run : report.unfinished) {
    for (const EpochRecord& epoch : run.epochs) add(run.arm + " (unfinished)", run.seed, epoch);
  }
  return text;
}

// The last epochs of unfinished runs, for the terminal; empty if there are none. report.md has all.
std::string unfinished_text(const Report& report) {
  if (report.unfinished.empty()) return "";
  std::string text = "\nUnfinished  epoch  training loss  test accuracy, %  seconds of training\n";
  for (const UnfinishedRun& run : report.unfinished) {
    constexpr std::size_t kMost = 10;
    const std::size_t left_out = run.epochs.size() - std::min(kMost, run.epochs.size());
    for (const EpochRecord& epoch : std::span(run.epochs).subspan(left_out)) {
      const std::string test =
          epoch.is_evaluated ? fmt::format("{:.2f}", 100 * epoch.test_accuracy) : "-";
      text += fmt::format("{:<10}  {:>5}  {:>13.4f}  {:>16}  {:>19.1f}\n", run.arm, epoch.epoch,
                          epoch.train_loss, test, epoch.training_seconds);
    }
  }
  return text;
}

// A report without a finished run.
std::string markdown_of_unfinished(const Report& report, const std::string& facts) {
  return fmt::format(
      "# Comparison of strategies: no run has finished\n\n- {}\n\n## Epochs\n\n{}\n"
      "## What was run\n\n{}",
      fmt::join(findings(report), "\n- "), epochs_markdown(report), facts);
}

std::string formulas_markdown(const Report& report, const Table& table) {
  std::string text;
  for (const std::string& arm : table.columns) {
    if (!runs_of(report, arm).front()->is_kolo()) continue;
    text += fmt::format("- **{}**: {}.\n", arm, runs_of(report, arm).front()->formula);
  }
  return text;
}

std::string facts_markdown(const Report& report) {
  std::string text = fmt::format("    {}\n\n| made with | |\n|---|---|\n", report.command);
  for (const auto& fact : report.machine) {
    text += fmt::format("| {} | {} |\n", fact.first, fact.second);
  }
  return text;
}

constexpr const char* kProfile =
    "Means of rank 0 over its counted iterations, with --profile. The rows add up to an iteration. "
    "Forward and backward of a layer are without communication inside; exposed communication has "
    "its own row. GFLOP/s: floating-point operations of both, padding included, divided by their "
    "time. An operation without parameters has the name of the layer before it. The part *other* "
    "is the rest, also a straggler's sleep.";

std::string profile_markdown(const Report& report, const std::vector<std::string>& arms) {
  if (report.runs.front().layers.empty()) return "";
  std::string text = fmt::format("\n## Time by layer\n\n{}\n", kProfile);
  for (const std::string& arm : arms)
    text += fmt::format("\n**{}**\n\n{}", arm, table_markdown(profile_table(report, arm)));
  return text;
}

constexpr const char* kPlots = R"(![Images per second](throughput.png)

![Where an iteration's time goes](iteration.png)

![Loss and accuracy](learning.png)

![Bytes moved](bytes.png)
)";

std::string plots_markdown(const Report& report) {
  return report.no_plots.empty() ? kPlots : fmt::format("*{}*\n", report.no_plots);
}

}  // namespace

std::string report_markdown(const Report& report) {
  if (report.runs.empty()) return markdown_of_unfinished(report, facts_markdown(report));
  const Table table = make_table(report);
  std::string text =
      fmt::format("# Comparison of strategies: {}\n\n", fmt::join(table.columns, ", "));
  for (const std::string& sentence : findings(report)) text += fmt::format("- {}\n", sentence);
  text += fmt::format("\n{}\n{}\n", table_markdown(table), plots_markdown(report));
  text += meaning_markdown(report);
  text +=
      fmt::format("\nBytes by the formula, for n workers:\n\n{}", formulas_markdown(report, table));
  text += profile_markdown(report, table.columns);
  text += fmt::format("\n## Epochs\n\n{}", epochs_markdown(report));
  text +=
      fmt::format("\n## What was run\n\n{}\n{}", terms_markdown(report), facts_markdown(report));
  return text + "\nreport.json has every number, of every rank and iteration.\n";
}

namespace {

std::string table_text(const Table& table) {
  std::size_t first = 0;
  for (const TableRow& row : table.rows) first = std::max(first, row.label.size());
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = table.columns[i].size();
    for (const TableRow& row : table.rows) width = std::max(width, row.cells[i].size());
    widths.push_back(width);
  }
  std::string text(first, ' ');
  for (std::size_t i = 0; i < widths.size(); ++i) {
    text += fmt::format("  {:>{}}", table.columns[i], widths[i]);
  }
  text += "\n";
  for (const TableRow& row : table.rows) {
    text += fmt::format("{:<{}}", row.label, first);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += fmt::format("  {:>{}}", row.cells[i], widths[i]);
    }
    text += "\n";
  }
  return text + "\n";
}

// For the terminal: the longest rows of each arm. report.md has all rows.
std::string profile_text(const Report& report, const std::vector<std::string>& arms) {
  if (report.runs.front().layers.empty()) return "";
  constexpr std::size_t kMost = 20;
  std::string text = "\n";
  for (const std::string& arm : arms)
    text += fmt::format("Time by layer, rank 0, {}:\n{}", arm,
                        table_text(profile_table(report, arm, kMost)));
  return text;
}

}  // namespace

std::string report_text(const Report& report) {
  std::string text, profiles;
  if (!report.runs.empty()) {
    const Table table = make_table(report);
    text = table_text(table);
    profiles = profile_text(report, table.columns);
  }
  for (const std::string& sentence : findings(report)) text += fmt::format("{}\n", sentence);
  return text + profiles + unfinished_text(report);
}

}  // namespace kolo::train
