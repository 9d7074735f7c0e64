#include "train/experiment/arm_runner.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "train/checkpoint/initial_weights.h"
#include "train/data/batch_plan.h"
#include "train/data/dataset.h"
#include "train/experiment/comparability.h"
#include "train/experiment/events.h"
#include "train/experiment/inherited_pipe.h"
#include "train/experiment/progress_bar.h"
#include "train/experiment/rank_process.h"
#include "train/experiment/training_setup.h"
#include "train/experiment/turns.h"
#include "train/report/epoch_files.h"
#include "train/versus/initial_state.h"
#include "transports/launch/launch.h"

namespace kolo::train {
namespace {

// Starts the reading thread with all signals blocked, so that the kernel delivers them to the
// launching thread.
std::thread start_reading(int descriptor, Observer& observer) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread reader([descriptor, &observer] { read_events(descriptor, observer); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return reader;
}

// A second signal ends the ranks at once.
constexpr std::chrono::hours kWholeEpoch{24 * 365};

struct Run {
  Arm arm;
  std::uint64_t seed = 0;
  RunPosition place;
};

int ranks_of(const Run& run, const Options& options) { return options.ranks + run.arm.servers; }

std::vector<Run> plan_runs(const Options& options, const RunSpan& span) {
  std::vector<Run> runs;
  for (int repetition = 0; repetition < options.seeds; ++repetition) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(repetition);
    for (const Arm& arm : options.arms) {
      std::string name =
          options.seeds > 1 ? fmt::format("{} seed {}", arm.name(), seed) : arm.name();
      if (!span.name.empty()) name += ", " + span.name;
      runs.push_back({arm, seed, {name, span.first + static_cast<int>(runs.size()), span.all}});
    }
  }
  return runs;
}

// One arm of a group, whose events a thread reads.
class RunningArm final : public Observer {
 public:
  // `turns`: null if there is one arm only.
  RunningArm(Run run, std::size_t number, Turns* turns, ProgressBar& progress, EpochLog& log)
      : run_(std::move(run)), number_(number), turns_(turns), progress_(progress), log_(log) {
    reader_ = start_reading(events_.reading_end(), *this);
  }
  ~RunningArm() override { stop_reading(); }
  RunningArm(const RunningArm&) = delete;
  RunningArm& operator=(const RunningArm&) = delete;

  void progress(const ProgressNote& note) override {
    if (note.activity == kWaitsForTurn) {
      if (turns_ != nullptr) turns_->waits(number_);
    } else {
      progress_.show(run_.place, note);
    }
  }
  void epoch_ended(const EpochRecord& epoch) override {
    epochs_.push_back(epoch);
    log_.add(run_.arm.name(), run_.seed, epoch);
  }
  void finished(const RunRecord& record) override { record_ = record; }

  // `state`: null if no arm trains in PyTorch.
  LaunchRequest request(const Options& options, const std::vector<std::string>& given,
                        const InitialState* state) const {
    const int turns = turns_ != nullptr ? turns_->descriptor(number_) : -1;
    LaunchRequest request;
    request.ranks = ranks_of(run_, options);
    if (!options.save.empty()) {
      request.grace = options.timeout;  // for an iteration and a checkpoint
      if (run_.arm.has_different_replicas()) request.request_grace = kWholeEpoch;
    }
    if (run_.arm.is_torch()) {
      request.command = state->command(options, run_.arm, run_.seed, events_.writing_end(), turns);
    } else {
      request.command = {own_program()};
      for (const std::string& word :
           arguments_of_rank(given, run_.arm, run_.seed, events_.writing_end(), turns))
        request.command.push_back(word);
    }
    request.descriptors = {events_.writing_end()};
    if (turns >= 0) request.descriptors.push_back(turns);
    return request;
  }

  // The ranks have ended.
  void stop_reading() {
    events_.close_writing_end();
    if (reader_.joinable()) reader_.join();
    if (turns_ != nullptr) turns_->ended(number_);
  }

  const Run& run() const { return run_; }
  // After stop_reading().
  const std::optional<RunRecord>& record() const { return record_; }
  const std::vector<EpochRecord>& epochs() const { return epochs_; }

 private:
  Run run_;
  std::size_t number_;
  Turns* turns_;
  ProgressBar& progress_;
  EpochLog& log_;
  std::optional<RunRecord> record_;
  std::vector<EpochRecord> epochs_;
  InheritedPipe events_;
  std::thread reader_;
};

// The kernel kills a rank by SIGKILL if the machine's memory ran out; others may, too.
bool ran_out_of_memory(const LaunchResult& result) {
  return result.exit_code == kOutOfMemoryExit || result.exit_code == 128 + SIGKILL;
}

std::string why_it_failed(const LaunchResult& result, int workers) {
  if (result.message.empty()) return "its ranks ended without a result";
  // After Ctrl-C the user knows why the ranks ended.
  if (result.exit_code == 128 + SIGINT && result.message.ends_with("was passed on"))
    return "interrupted";
  if (result.exit_code == kOutOfMemoryExit) return "memory ran out";
  // The rank that ended first need not be the one that failed: it may have waited for a peer.
  constexpr std::string_view kWithOne = "exited with code 1";
  if (result.message.ends_with(kWithOne) ||
      result.message.find(fmt::format("{};", kWithOne)) != std::string::npos)
    return "its ranks ended, and one has said why";
  const bool is_of_server = result.failed.value_or(0) >= workers;
  return result.message +
         (is_of_server ? fmt::format("; rank {} was a dedicated server", *result.failed) : "");
}

// Runs the arms of one seed at the same time, in turns. Stores the finished ones, and the first
// failure.
void run_group(const std::vector<Run>& runs, const Options& options,
               const std::vector<std::string>& arguments, const InitialState* state,
               ProgressBar& progress, EpochLog& log, ExperimentResult& outcome) {
  std::vector<int> ranks;
  for (const Run& run : runs) ranks.push_back(ranks_of(run, options));
  Turns turns(ranks);
  std::vector<std::unique_ptr<RunningArm>> arms;
  std::vector<LaunchRequest> requests;
  for (const Run& run : runs) {
    arms.push_back(std::make_unique<RunningArm>(run, arms.size(),
                                                runs.size() > 1 ? &turns : nullptr, progress, log));
    requests.push_back(arms.back()->request(options, arguments, state));
  }
  launch_jobs(requests, [&](std::size_t i, const LaunchResult& result) {
    arms[i]->stop_reading();
    if ((result.exit_code == 0 && arms[i]->record()) || outcome.exit_code != 0) return;
    progress.clear();
    outcome.exit_code = result.exit_code != 0 ? result.exit_code : 1;
    outcome.is_out_of_memory = ran_out_of_memory(result);
    outcome.message =
        fmt::format("{}: {}", arms[i]->run().place.name, why_it_failed(result, options.ranks));
    std::fprintf(stderr, "kolo-train: %s\n", outcome.message.c_str());
  });
  for (const auto& arm : arms) {
    if (arm->record()) {
      outcome.runs.push_back(*arm->record());
    } else if (!arm->epochs().empty()) {
      outcome.unfinished.push_back({arm->run().arm.name(), arm->run().seed, arm->epochs()});
    }
  }
  require_comparable(outcome.runs);
}

}  // namespace

void check_data(const Options& options) {
  const DatasetOptions data{options.seed, options.train_size, options.test_size,
                            options.image_size};
  for (const Split split : {Split::train, Split::test}) {
    const auto dataset = open_dataset(options.dataset, split, data);
    BatchPlan(dataset->size(), options.samples_per_iteration(), options.ranks);
    if (split != Split::train) continue;
    check_torch_arms(options, dataset->size());
    require_full_batch(options, dataset->size());
    for (const Arm& arm : options.arms) {
      if (arm.stages > 0) stages_of(options, arm, dataset->shape(), dataset->classes());
    }
    check_checkpoints(options, *dataset);
  }
}

ExperimentResult run_arms(const Options& options, const std::vector<std::string>& arguments) {
  ProgressBar progress(stderr);
  return run_arms(options, arguments,
                  {progress, "", 0, static_cast<int>(options.arms.size()) * options.seeds});
}

ExperimentResult run_arms(const Options& options, const std::vector<std::string>& arguments,
                          const RunSpan& span) {
  ExperimentResult outcome;
  EpochLog log(options.report);
  const std::vector<Run> runs = plan_runs(options, span);
  std::optional<InitialState> state;
  if (std::ranges::any_of(options.arms, &Arm::is_torch)) state.emplace(options);
  for (auto first = runs.begin(); first != runs.end() && outcome.exit_code == 0;) {
    const auto end = first + static_cast<std::ptrdiff_t>(options.arms.size());
    run_group({first, end}, options, arguments, state ? &*state : nullptr, span.progress, log,
              outcome);
    first = end;
  }
  return outcome;
}

}  // namespace kolo::train
