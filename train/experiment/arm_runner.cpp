#include "train/experiment/arm_runner.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "train/data/batch_plan.h"
#include "train/data/dataset.h"
#include "train/experiment/comparability.h"
#include "train/experiment/events.h"
#include "train/experiment/progress_bar.h"
#include "transports/error.h"
#include "transports/launch/launch.h"

namespace kolo::train {
namespace {

// A pipe that is not closed on exec, because rank 0 writes to it.
class InheritedPipe {
 public:
  InheritedPipe() {
    if (pipe(ends_) == 0) return;
    throw Error(ErrorCode::kSystem, kNoPeer, fmt::format("pipe: {}", std::strerror(errno)));
  }
  ~InheritedPipe() {
    close_writing_end();
    close(ends_[0]);
  }
  InheritedPipe(const InheritedPipe&) = delete;
  InheritedPipe& operator=(const InheritedPipe&) = delete;

  int reading_end() const { return ends_[0]; }
  int writing_end() const { return ends_[1]; }
  void close_writing_end() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

class RunObserver final : public Observer {
 public:
  RunObserver(ProgressBar& progress, RunPosition place)
      : progress_(progress), place_(std::move(place)) {}
  void progress(const ProgressNote& note) override { progress_.show(place_, note); }
  void finished(const RunRecord& record) override { record_ = record; }
  const std::optional<RunRecord>& record() const { return record_; }

 private:
  ProgressBar& progress_;
  RunPosition place_;
  std::optional<RunRecord> record_;
};

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

struct Run {
  Arm arm;
  std::uint64_t seed = 0;
  RunPosition place;
};

std::vector<Run> plan_runs(const Options& options) {
  std::vector<Run> runs;
  const int count = static_cast<int>(options.arms.size()) * options.seeds;
  for (int repetition = 0; repetition < options.seeds; ++repetition) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(repetition);
    for (const Arm& arm : options.arms) {
      const std::string name =
          options.seeds > 1 ? fmt::format("{} seed {}", arm.name(), seed) : arm.name();
      runs.push_back({arm, seed, {name, static_cast<int>(runs.size()), count}});
    }
  }
  return runs;
}

LaunchResult launch(const Run& run, const Options& options,
                    const std::vector<std::string>& arguments, RunObserver& observer) {
  InheritedPipe events;
  LaunchRequest request;
  request.ranks = options.ranks + run.arm.servers;
  request.command = {own_program()};
  for (const std::string& word :
       arguments_of_rank(arguments, run.arm, run.seed, events.writing_end())) {
    request.command.push_back(word);
  }
  std::thread reader = start_reading(events.reading_end(), observer);
  LaunchResult result;
  std::exception_ptr failure;
  try {
    result = launch_ranks(request);
  } catch (...) {
    failure = std::current_exception();
  }
  events.close_writing_end();
  reader.join();
  if (failure) std::rethrow_exception(failure);
  return result;
}

std::string why_it_failed(const LaunchResult& result, int workers) {
  if (result.message.empty()) return "its ranks ended without a result";
  // After Ctrl-C the user knows why the ranks ended.
  if (result.exit_code == 128 + SIGINT && result.message.ends_with("was passed on"))
    return "interrupted";
  // The rank that ended first need not be the one that failed: it may have waited for a peer.
  constexpr std::string_view kWithOne = "exited with code 1";
  if (result.message.ends_with(kWithOne) ||
      result.message.find(fmt::format("{};", kWithOne)) != std::string::npos)
    return "its ranks ended, and one has said why";
  const bool is_of_server = result.failed.value_or(0) >= workers;
  return result.message +
         (is_of_server ? fmt::format("; rank {} was a dedicated server", *result.failed) : "");
}

}  // namespace

void check_data(const Options& options) {
  const DatasetOptions data{options.seed, options.train_size, options.test_size};
  for (const Split split : {Split::train, Split::test}) {
    const auto dataset = open_dataset(options.dataset, split, data);
    BatchPlan(dataset->size(), options.samples_per_iteration(), options.ranks);
  }
}

ExperimentResult run_arms(const Options& options, const std::vector<std::string>& arguments) {
  ExperimentResult outcome;
  ProgressBar progress(stderr);
  for (const Run& run : plan_runs(options)) {
    RunObserver observer(progress, run.place);
    const LaunchResult result = launch(run, options, arguments, observer);
    if (result.exit_code != 0 || !observer.record()) {
      progress.clear();
      outcome.exit_code = result.exit_code != 0 ? result.exit_code : 1;
      outcome.message = fmt::format("{}: {}", run.place.name, why_it_failed(result, options.ranks));
      break;
    }
    outcome.runs.push_back(*observer.record());
    require_comparable(outcome.runs);
  }
  return outcome;
}

}  // namespace kolo::train
