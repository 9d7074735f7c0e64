// Event loop of the launcher: signals, output, ends of ranks, deadlines, for one or more jobs.
//
// The first rank that fails decides the job's exit code. If several end at once, one SIGCHLD stands
// for all of them, and it names the first. But the first to end need not be the first to fail. The
// kernel closes a killed rank's connections before it reports its end, and a peer that sees this
// may end before the report. So a rank that was killed before the launcher signalled any rank
// overrides a rank that may have followed it. So does a rank that ends by a signal that was passed
// on.
#include "transports/launch/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "transports/error.h"
#include "transports/launch/descendants.h"
#include "transports/launch/descriptor_limit.h"
#include "transports/launch/environment_search.h"
#include "transports/launch/output.h"
#include "transports/launch/plan.h"
#include "transports/launch/prefixed_lines.h"
#include "transports/launch/rank_process.h"
#include "transports/launch/reaper.h"
#include "transports/launch/signals.h"
#include "transports/posix/descriptor.h"
#include "transports/registry.h"

namespace kolo::inline v0 {
namespace {

using launch::CannotStart;
using launch::RankProcess;
using std::chrono::milliseconds;

constexpr milliseconds kNotice{
    200};  // time for the others to see and report the failure, before SIGTERM
constexpr milliseconds kLastOutput{
    1000};  // for output of ended ranks that another process still holds open
constexpr milliseconds kLastWords{200};  // for a blocked reader, after a request to end

// Makes this process the parent of orphans of the ranks, so that it can reap them, whatever process
// 1 does.
struct Subreaper {
  Subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~Subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 0); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;
};

std::string others(int count, const std::string& noun) {
  return count == 1 ? fmt::format("the other {} was", noun)
                    : fmt::format("the other {} {}s were", count, noun);
}

// Whether a rank can end like this because it saw another one fail: by exit, by an uncaught
// exception, or by a write to a pipe without a reader.
bool may_follow_another(const launch::ExitStatus& ending) {
  return !ending.by_signal || ending.value == SIGABRT || ending.value == SIGPIPE;
}

// The launcher's own output, which its jobs share.
struct Outputs {
  bool has_kept() const { return out.has_kept() || errors.has_kept(); }
  void flush() {
    out.flush();
    errors.flush();
  }
  void add_to(std::vector<pollfd>& waiting) const {
    for (const launch::Output* output : {&out, &errors}) {
      if (output->has_kept()) waiting.push_back({output->descriptor(), POLLOUT, 0});
    }
  }

  launch::Output out{STDOUT_FILENO};
  launch::Output errors{STDERR_FILENO};
};

class Job {
 public:
  Job(const LaunchRequest& request, Outputs& outputs)
      : request_(request),
        own_outputs_(outputs),
        plan_(launch::plan_of(request)),
        own_processes_(plan_.own_variables),
        reaper_(static_cast<int>(plan_.processes.size()), own_processes_) {}

  // Starts the ranks. Returns a result if the program cannot be started.
  std::optional<LaunchResult> start() {
    for (const launch::Plan::Process& process : plan_.processes) {
      try {
        ranks_.emplace_back(process.program, reaper_);
      } catch (const CannotStart& failure) {
        return LaunchResult{failure.error == ENOENT ? 127 : 126,
                            fmt::format("cannot start '{}': {}", process.program.command.front(),
                                        posix::error_text(failure.error))};
      }
      outputs_.emplace_back(ranks_.back().take_output(), own_outputs_.out, process.prefix);
      outputs_.emplace_back(ranks_.back().take_errors(), own_outputs_.errors, process.prefix);
    }
    return std::nullopt;
  }

  void add_outputs(std::vector<pollfd>& waiting) const {
    for (const auto& output : outputs_) {
      if (output.can_copy()) waiting.push_back({output.descriptor(), POLLIN, 0});
    }
  }

  void copy_output() {
    for (auto& output : outputs_) output.copy();
  }

  // `first`: of all children that have ended, the first.
  void look_at_ranks(pid_t first) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i].pid() == first) look_at(i);
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) look_at(i);
  }

  void pass_on(int signal) {
    if (drain_until_) return stop_draining(signal);
    signal_all(signal);
    if (!launch::is_request_to_end(signal)) return;
    end_strays(signal);
    if (kill_at_) return;
    passed_on_ = signal;
    end_at_.reset();
    kill_at_ = Clock::now() + request_.request_grace.value_or(request_.grace);
  }

  // `is_alone`: no other job runs. Then orphans of unknown origin are this job's.
  void set_alone(bool is_alone) { is_alone_ = is_alone; }

  std::optional<Deadline> next_deadline() const {
    if (drain_until_) return drain_until_;
    return end_at_ ? end_at_ : kill_at_;
  }

  // Ends ranks whose time is over, and processes that all ranks left behind.
  void keep_deadlines() {
    const Deadline now = Clock::now();
    if (drain_until_) {  // a reader that is slow may take its time, unless the end was requested
      if (own_outputs_.has_kept() && passed_on_ == 0) drain_until_ = now + kLastOutput;
      return;
    }
    if (end_at_ && now >= *end_at_) {
      signal_all(SIGTERM);
      end_strays(SIGTERM);
      signal_all(SIGCONT);  // a stopped rank must continue to end
      end_at_.reset();
      kill_at_ = now + request_.grace;
    }
    if (kill_at_ && now >= *kill_at_) {
      signal_all(SIGKILL);
      kill_at_ = now + request_.grace;
    }
    if (std::ranges::any_of(ranks_, &RankProcess::is_running)) return;
    signal_all(SIGKILL);
    end_strays(SIGKILL);
    drain_until_ = now + (own_outputs_.has_kept() && passed_on_ != 0 ? kLastWords : kLastOutput);
  }

  // True if all ranks have ended, and their output is copied or late.
  bool is_over() const {
    if (!drain_until_) return false;
    if (Clock::now() >= *drain_until_) return true;
    return std::ranges::none_of(outputs_, &launch::PrefixedLines::is_open) &&
           !own_outputs_.has_kept();
  }

  LaunchResult result() const {
    if (!failed_) return result_of_success();
    const launch::ExitStatus& ending = ranks_[*failed_].ending();
    std::string message = fmt::format("{} {}", plan_.processes[*failed_].name, ending.text());
    if (passed_on_ != 0) {
      message +=
          fmt::format(" after signal {} ({}) was passed on", passed_on_, strsignal(passed_on_));
    } else if (bystanders_ > 0) {
      message += fmt::format("; {} ended", others(bystanders_, plan_.noun));
    }
    if (!ending.by_signal) message += plan_.advice(ending.value);
    return {ending.exit_code(), message, static_cast<int>(*failed_), passed_on_};
  }

 private:
  void look_at(std::size_t rank) {
    if (!ranks_[rank].look() || ranks_[rank].ending().is_success()) return;
    if (failed_) return prefer_killed(rank);
    failed_ = rank;
    failed_by_itself_ = passed_on_ == 0;
    for (const RankProcess& other : ranks_) bystanders_ += other.is_running() ? 1 : 0;
    if (!kill_at_) end_at_ = Clock::now() + kNotice;
    if (kill_at_) kill_at_ = std::min(*kill_at_, Clock::now() + kNotice + request_.grace);
  }

  // Lets a killed rank replace failed_. Before the launcher signals any rank, a rank is killed for
  // a reason of its own. And if a signal was passed on, a rank that ended by it is the reason why
  // others failed that saw it end.
  void prefer_killed(std::size_t rank) {
    const launch::ExitStatus& ending = ranks_[rank].ending();
    const bool by_passed_on = !failed_by_itself_ && ending.by_signal && ending.value == passed_on_;
    if (!end_at_ && !by_passed_on) return;
    if (may_follow_another(ending)) return;
    if (may_follow_another(ranks_[*failed_].ending())) failed_ = rank;
  }

  void signal_all(int signal) {
    for (RankProcess& rank : ranks_) rank.signal_group(signal);
  }

  // Signals descendants of the ranks that have left their process groups.
  void end_strays(int signal) {
    launch::signal_descendants(signal, [this](const launch::Descendant& one) {
      if (one.child == reaper_.pid()) return false;
      const auto leads = [&one](const RankProcess& rank) { return rank.pid() == one.group; };
      if (std::ranges::any_of(ranks_, leads)) return false;  // signal_all() reaches it
      const auto is_its = [&one](const RankProcess& rank) { return rank.pid() == one.child; };
      return is_alone_ || std::ranges::any_of(ranks_, is_its) || own_processes_.has_all(one.pid);
    });
  }

  // A request to end while the last output waits for a reader: the output is given up.
  void stop_draining(int signal) {
    if (!launch::is_request_to_end(signal) || !own_outputs_.has_kept()) return;
    if (passed_on_ == 0) passed_on_ = signal;
    drain_until_ = Clock::now();
  }

  // Success, unless output of the ranks could not be written.
  LaunchResult result_of_success() const {
    if (own_outputs_.has_kept()) {
      return {128 + passed_on_,
              fmt::format("signal {} ({}) came before a reader took the last output, which is lost",
                          passed_on_, strsignal(passed_on_))};
    }
    for (const launch::Output* output : {&own_outputs_.out, &own_outputs_.errors}) {
      if (output->error() == 0) continue;
      return {1, fmt::format("cannot write the output of the ranks: {}; missing lines are lost",
                             posix::error_text(output->error()))};
    }
    return {};
  }

  const LaunchRequest& request_;
  Outputs& own_outputs_;
  const launch::Plan plan_;
  launch::EnvironmentSearch own_processes_;
  launch::Reaper reaper_;
  std::vector<RankProcess> ranks_;
  std::vector<launch::PrefixedLines> outputs_;
  std::optional<std::size_t> failed_;
  int bystanders_ = 0;                   // ranks still running when it failed
  bool failed_by_itself_ = true;         // before any signal was passed on
  int passed_on_ = 0;                    // the first passed-on signal that requests the end
  std::optional<Deadline> end_at_;       // SIGTERM to all
  std::optional<Deadline> kill_at_;      // SIGKILL to all
  std::optional<Deadline> drain_until_;  // all ranks have ended
  bool is_alone_ = true;
};

// Jobs that run at the same time, in one event loop.
class Jobs {
 public:
  // `advice`: added to the message of each failure.
  Jobs(std::span<const LaunchRequest> requests, std::string advice, const JobEnded& ended)
      : advice_(std::move(advice)), ended_(ended), results_(requests.size()) {
    for (const LaunchRequest& request : requests)
      jobs_.push_back(std::make_unique<Job>(request, outputs_));
    tell_whether_alone();
    if (requests.front().part) {
      lifeline_ = posix::Descriptor(dup(STDIN_FILENO));
      fcntl(lifeline_.get(), F_SETFL, O_NONBLOCK);
      fcntl(lifeline_.get(), F_SETFD, FD_CLOEXEC);
    }
  }

  std::vector<LaunchResult> run() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (auto failure = jobs_[i]->start()) end(i, *failure);
    }
    while (std::ranges::any_of(jobs_, [](const auto& job) { return job != nullptr; })) {
      wait_for_something();
      outputs_.flush();
      for_each([](Job& job) { job.copy_output(); });
      take_signals();
      for_each([](Job& job) { job.keep_deadlines(); });
      for (std::size_t i = 0; i < jobs_.size(); ++i) {
        if (jobs_[i] && jobs_[i]->is_over()) end(i, jobs_[i]->result());
      }
    }
    return results_;
  }

 private:
  void for_each(const std::function<void(Job&)>& call) {
    for (const auto& job : jobs_) {
      if (job) call(*job);
    }
  }

  void end(std::size_t i, LaunchResult result) {
    if (result.exit_code != 0) result.message += advice_;
    results_[i] = std::move(result);
    jobs_[i].reset();
    tell_whether_alone();
    if (ended_) ended_(i, results_[i]);
  }

  void tell_whether_alone() {
    const auto left = std::ranges::count_if(jobs_, [](const auto& job) { return job != nullptr; });
    for_each([left](Job& job) { job.set_alone(left == 1); });
  }

  void wait_for_something() {
    std::vector<pollfd> waiting{{signals_.descriptor(), POLLIN, 0}};
    outputs_.add_to(waiting);
    if (lifeline_.is_open()) waiting.push_back({lifeline_.get(), POLLIN, 0});
    std::optional<Deadline> deadline;
    for_each([&](Job& job) {
      job.add_outputs(waiting);
      const auto its = job.next_deadline();
      if (its && (!deadline || *its < *deadline)) deadline = its;
    });
    int timeout_ms = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<milliseconds>(*deadline - Clock::now()).count();
      timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
    }
    poll(waiting.data(), waiting.size(), timeout_ms);
  }

  void take_signals() {
    while (const auto arrived = signals_.next()) {
      if (arrived->signal == SIGCHLD) {
        for_each([&](Job& job) { job.look_at_ranks(arrived->from); });
        continue;
      }
      for_each([&](Job& job) { job.pass_on(arrived->signal); });
      // Stop with the ranks; a later SIGCONT is passed on too.
      if (arrived->signal == SIGTSTP) raise(SIGSTOP);
    }
    take_lifeline();
  }

  // The launcher of the whole job writes signals to the lifeline. Its end is a request to end.
  void take_lifeline() {
    unsigned char signal = 0;
    while (lifeline_.is_open()) {
      const ssize_t got = read(lifeline_.get(), &signal, 1);
      if (got < 0) return;
      if (got == 0) lifeline_.close();
      for_each([&](Job& job) { job.pass_on(got == 0 ? SIGTERM : signal); });
    }
  }

  launch::Signals signals_;  // before threads and processes inherit the mask
  Subreaper subreaper_;
  const std::string advice_;
  const JobEnded& ended_;
  posix::Descriptor lifeline_;
  Outputs outputs_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<LaunchResult> results_;
};

// Errors that every rank would have are reported once, here.
void require_valid(const LaunchRequest& request) {
  if (request.command.empty())
    throw std::invalid_argument("launcher: there is no command to start");
  if (request.ranks < 1) {
    throw std::invalid_argument(
        fmt::format("launcher: cannot start {} ranks; at least one is needed", request.ranks));
  }
  const std::string transport = resolve_transport("auto");
  if (request.ranks > 1 && !joins_processes(transport)) {
    throw std::invalid_argument(
        fmt::format("KOLO_TRANSPORT: {} joins threads of one process, but the launcher starts each "
                    "rank as a process: unset it, or choose another transport",
                    transport));
  }
}

}  // namespace

LaunchResult launch_ranks(const LaunchRequest& request) {
  return launch_jobs({&request, 1}).front();
}

std::vector<LaunchResult> launch_jobs(std::span<const LaunchRequest> requests,
                                      const JobEnded& ended) {
  for (const LaunchRequest& request : requests) require_valid(request);
  // Programs with plain output are kolo's own: their ranks use the store.
  const bool are_ours = std::ranges::any_of(requests, [](const LaunchRequest& request) {
    return request.output == RankOutput::kRankZeroPlain;
  });
  if (const auto why = launch::why_too_few_descriptors(requests, are_ours); !why.empty())
    throw Error(ErrorCode::kSystem, kNoPeer, "launcher: " + why);
  const std::string suspicion = launch::why_too_few_descriptors(requests, true);
  const std::string advice = suspicion.empty()
                                 ? ""
                                 : fmt::format(
                                       "; a possible cause: the launcher has too few descriptors "
                                       "for all ranks to use its store: {}",
                                       suspicion);
  return Jobs(requests, advice, ended).run();
}

void open_standard_descriptors(LostOutput lost) {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    const bool refuses = descriptor == STDOUT_FILENO && lost == LostOutput::kIsAnError;
    // open() takes the lowest free number, which is this one.
    if (open("/dev/null", refuses ? O_RDONLY : O_RDWR) < 0) return;
  }
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace kolo::inline v0
