#include "train/experiment/rank_process.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <new>
#include <stdexcept>

#include "collectives/communicator.h"
#include "collectives/report_exceptions.h"
#include "train/count_text.h"
#include "train/data/dataset.h"
#include "train/experiment/events.h"
#include "train/experiment/progress_bar.h"
#include "train/loop/trainer.h"
#include "train/report/epoch_files.h"
#include "train/report/publish.h"
#include "transports/launch/report_once.h"
#include "transports/rendezvous.h"
#include "transports/settings.h"

namespace kolo::train {
namespace {

// Observer of rank 0 in a job that another launcher started: writes to the terminal.
class TerminalObserver final : public Observer {
 public:
  TerminalObserver(const Options& options, const std::vector<std::string>& arguments)
      : options_(options), arguments_(arguments) {}

  void progress(const ProgressNote& note) override {
    progress_.show({options_.arms.front().name(), 0, 1}, note);
  }
  void epoch_ended(const EpochRecord& epoch) override {
    log_.add(options_.arms.front().name(), options_.seed, epoch);
  }
  void finished(const RunRecord& record) override {
    progress_.clear();
    remove_epoch_log(options_.report);
    publish(options_, arguments_, {{record}, {}, 0, ""});
  }

 private:
  const Options& options_;
  const std::vector<std::string>& arguments_;
  ProgressBar progress_{stderr};
  EpochLog log_{options_.report};
};

std::unique_ptr<Observer> observer_of(const Options& options,
                                      const std::vector<std::string>& arguments) {
  if (options.events_fd >= 0) return std::make_unique<EventWriter>(options.events_fd);
  return std::make_unique<TerminalObserver>(options, arguments);
}

// True if another rank aborted the job ("rank 2 (node1) aborted: ..."). That rank reports the
// reason itself.
bool is_reported_by_other_rank(const Error& error, int rank) {
  const std::string text = error.what();
  return error.code() == ErrorCode::kAborted && text.starts_with("rank ") &&
         !text.starts_with(fmt::format("rank {} ", rank));
}

void check_size(const Options& options, int size) {
  const Arm& arm = options.arms.front();
  if (size == options.ranks + arm.servers) return;
  throw UsageError(fmt::format(
      "--ranks {}: {} needs {} ({} and {}), and {} {} started", options.ranks, arm.name(),
      count_text(options.ranks + arm.servers, "rank"), count_text(options.ranks, "worker"),
      count_text(arm.servers, "dedicated server"), size, size == 1 ? "was" : "were"));
}

// Joins the job and trains. A failure of this rank alone is passed on to the others. Returns the
// signal that has ended the run after a checkpoint, or 0.
int join_and_train(const Options& options, const std::vector<std::string>& arguments) {
  CommunicatorOptions how;
  how.transport = options.transport;
  how.timeout = options.timeout;
  how.progress_thread = options.progress_thread;
  how.reproducibility = options.reproducibility;
  Communicator communicator = Communicator::from_environment(how);
  const auto observer = observer_of(options, arguments);
  std::optional<Trainer> trainer;  // outlives the abort: its memory may still be written before
  return report_exceptions(communicator, [&] {
    trainer.emplace(options, communicator, *observer);
    trainer->run();
    communicator.barrier();  // so that no peer takes this rank's exit for a failure
    return trainer->stopped_by();
  });
}

}  // namespace

bool is_launched() { return read_settings().rank.has_value(); }

int report_failure(const Error& error, int rank) {
  if (is_reported_by_other_rank(error, rank)) return 1;
  return launch::refuse_once(fmt::format("kolo-train: {}", error.what()), 1);
}

int run_as_rank(const Options& options, const std::vector<std::string>& arguments) {
  const int rank = launch_environment().rank;
  check_size(options, launch_environment().size);
  if (options.events_fd < 0 && options.seeds > 1)
    throw UsageError(
        "--seeds: ranks of another launcher train once; remove it, or start kolo-train "
        "alone");
  if (rank == 0) check_report_folder(options.report);
  int stopped_by = 0;
  try {
    stopped_by = join_and_train(options, arguments);
  } catch (const Error& error) {
    if (options.events_fd < 0) throw;  // under another launcher each rank reports it
    return report_failure(error, rank);
  } catch (const DataError&) {
    throw;
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::bad_alloc&) {
    return launch::refuse_once(
        "kolo-train: memory ran out; take a smaller --batch-size or --model, or fewer --ranks",
        kOutOfMemoryExit);
  } catch (const std::exception& error) {  // probably of several ranks, as a loss of NaN
    if (options.events_fd < 0) throw;
    return launch::refuse_once(fmt::format("kolo-train: {}", error.what()), 1);
  }
  if (stopped_by == 0) return 0;
  if (rank == 0) {
    std::fprintf(stderr,
                 "kolo-train: stopped by signal %d after a checkpoint; go on with --resume %s\n",
                 stopped_by, options.save.c_str());
  }
  std::raise(stopped_by);  // it has its default effect, which the launcher expects
  return 1;
}

}  // namespace kolo::train
