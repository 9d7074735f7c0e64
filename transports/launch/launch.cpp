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
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
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
#include "transports/launch/prefixed_lines.h"
#include "transports/launch/rank_process.h"
#include "transports/launch/reaper.h"
#include "transports/launch/signals.h"
#include "transports/posix/descriptor.h"
#include "transports/registry.h"
#include "transports/rendezvous.h"

namespace kolo {
namespace {

using launch::CannotStart;
using launch::RankProcess;
using std::chrono::milliseconds;

constexpr milliseconds kNotice{
    200};  // time for the others to see and report the failure, before SIGTERM
constexpr milliseconds kLastOutput{
    1000};  // for output of ended ranks that another process still holds open

// A reserved port: the kernel gives it to no other process. It is bound, but does not listen, so a
// rank that sets SO_REUSEADDR, as every server does, can bind it.
class FreePort {
 public:
  FreePort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const int yes = 1;
    setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (!socket_.is_open()) posix::throw_system("launcher: socket");
    if (bind(socket_.get(), generic, length) != 0 ||
        getsockname(socket_.get(), generic, &length) != 0) {
      posix::throw_system("launcher: no free port on 127.0.0.1");
    }
    port_ = ntohs(address.sin_port);
  }

  int port() const { return port_; }

 private:
  posix::Descriptor socket_;
  int port_ = 0;
};

// Makes this process the parent of orphans of the ranks, so that it can reap them, whatever process
// 1 does.
struct Subreaper {
  Subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~Subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 0); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;
};

std::string others(int count) {
  return count == 1 ? "the other rank was" : fmt::format("the other {} ranks were", count);
}

// Whether a rank can end like this because it saw another one fail: by exit, by an uncaught
// exception, or by a write to a pipe without a reader.
bool may_follow_another(const launch::ExitStatus& ending) {
  return !ending.by_signal || ending.value == SIGABRT || ending.value == SIGPIPE;
}

class Job {
 public:
  explicit Job(const LaunchRequest& request)
      : request_(request),
        cores_(launch::bind_ranks(launch::cores_by_node(), request.ranks, request.binding)),
        reaper_(request.ranks),
        store_("127.0.0.1", 0) {}

  // Starts the ranks. Returns a result if the program cannot be started.
  std::optional<LaunchResult> start() {
    for (int rank = 0; rank < request_.ranks; ++rank) {
      try {
        ranks_.emplace_back(program(rank), reaper_);
      } catch (const CannotStart& failure) {
        return LaunchResult{failure.error == ENOENT ? 127 : 126,
                            fmt::format("cannot start '{}': {}", request_.command.front(),
                                        posix::error_text(failure.error))};
      }
      const std::string prefix = fmt::format("[{}] ", rank);
      outputs_.emplace_back(ranks_.back().take_output(), STDOUT_FILENO, prefix);
      outputs_.emplace_back(ranks_.back().take_errors(), STDERR_FILENO, prefix);
    }
    return std::nullopt;
  }

  void add_outputs(std::vector<pollfd>& waiting) const {
    for (const auto& output : outputs_) {
      if (output.is_open()) waiting.push_back({output.descriptor(), POLLIN, 0});
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
    if (drain_until_) return;
    signal_all(signal);
    if (!launch::is_request_to_end(signal) || kill_at_) return;
    passed_on_ = signal;
    end_at_.reset();
    kill_at_ = Clock::now() + request_.grace;
  }

  std::optional<Deadline> next_deadline() const {
    if (drain_until_) return drain_until_;
    return end_at_ ? end_at_ : kill_at_;
  }

  // Ends ranks whose time is over, and processes that all ranks left behind.
  void keep_deadlines() {
    if (drain_until_) return;
    const Deadline now = Clock::now();
    if (end_at_ && now >= *end_at_) {
      signal_all(SIGTERM);
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
    drain_until_ = now + kLastOutput;
  }

  // True if all ranks have ended, and their output is copied or late.
  bool is_over() const {
    return drain_until_ && (std::ranges::none_of(outputs_, &launch::PrefixedLines::is_open) ||
                            Clock::now() >= *drain_until_);
  }

  LaunchResult result() const {
    if (!failed_) return result_of_success();
    const launch::ExitStatus& ending = ranks_[*failed_].ending();
    std::string message = fmt::format("rank {} {}", *failed_, ending.text());
    if (passed_on_ != 0) {
      message +=
          fmt::format(" after signal {} ({}) was passed on", passed_on_, strsignal(passed_on_));
    } else if (bystanders_ > 0) {
      message += fmt::format("; {} ended", others(bystanders_));
    }
    return {ending.exit_code(), message, static_cast<int>(*failed_)};
  }

 private:
  launch::RankProgram program(int rank) const {
    const std::string size = std::to_string(request_.ranks);
    const std::string number = std::to_string(rank);
    return {request_.command,
            {{"RANK", number},
             {"WORLD_SIZE", size},
             {"LOCAL_RANK", number},
             {"LOCAL_WORLD_SIZE", size},
             {"KOLO_STORE", fmt::format("tcp://127.0.0.1:{}", store_.port())},
             {"MASTER_ADDR", "127.0.0.1"},
             {"MASTER_PORT", std::to_string(free_port_.port())}},
            rank == 0 && request_.output == RankOutput::kRankZeroPlain,
            cores_.empty() ? std::vector<int>() : cores_[static_cast<std::size_t>(rank)],
            request_.descriptors};
  }

  void look_at(std::size_t rank) {
    if (!ranks_[rank].look() || ranks_[rank].ending().is_success()) return;
    if (failed_) return prefer_killed(rank);
    failed_ = rank;
    failed_by_itself_ = passed_on_ == 0;
    for (const RankProcess& other : ranks_) bystanders_ += other.is_running() ? 1 : 0;
    if (!kill_at_) end_at_ = Clock::now() + kNotice;
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
    for (const RankProcess& rank : ranks_) rank.signal_group(signal);
  }

  // Success, unless output of the ranks could not be written.
  LaunchResult result_of_success() const {
    for (const launch::PrefixedLines& output : outputs_) {
      if (output.error() == 0) continue;
      return {1, fmt::format("cannot write the output of the ranks: {}; missing lines are lost",
                             posix::error_text(output.error()))};
    }
    return {};
  }

  const LaunchRequest& request_;
  const std::vector<std::vector<int>> cores_;  // of each rank; empty: no binding
  launch::Reaper reaper_;
  TcpStoreServer store_;
  FreePort free_port_;
  std::vector<RankProcess> ranks_;
  std::vector<launch::PrefixedLines> outputs_;
  std::optional<std::size_t> failed_;
  int bystanders_ = 0;                   // ranks still running when it failed
  bool failed_by_itself_ = true;         // before any signal was passed on
  int passed_on_ = 0;                    // the first passed-on signal that requests the end
  std::optional<Deadline> end_at_;       // SIGTERM to all
  std::optional<Deadline> kill_at_;      // SIGKILL to all
  std::optional<Deadline> drain_until_;  // all ranks have ended
};

// Jobs that run at the same time, in one event loop.
class Jobs {
 public:
  // `advice`: added to the message of each failure.
  Jobs(std::span<const LaunchRequest> requests, std::string advice, const JobEnded& ended)
      : advice_(std::move(advice)), ended_(ended), results_(requests.size()) {
    for (const LaunchRequest& request : requests) jobs_.push_back(std::make_unique<Job>(request));
  }

  std::vector<LaunchResult> run() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (auto failure = jobs_[i]->start()) end(i, *failure);
    }
    while (std::ranges::any_of(jobs_, [](const auto& job) { return job != nullptr; })) {
      wait_for_something();
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
    if (ended_) ended_(i, results_[i]);
  }

  void wait_for_something() {
    std::vector<pollfd> waiting{{signals_.descriptor(), POLLIN, 0}};
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
  }

  launch::Signals signals_;  // before threads and processes inherit the mask
  Subreaper subreaper_;
  const std::string advice_;
  const JobEnded& ended_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<LaunchResult> results_;
};

// Largest number of descriptors open in this process while it launches. `with_store`: each rank
// that is already running has a connection to the store.
int descriptors_needed(std::span<const LaunchRequest> requests, int open_now, bool with_store) {
  constexpr int kSignals = 1;
  constexpr int kOwn = 6;            // of a job: the reaper, three or four of the store, a port
  constexpr int kWhileStarting = 6;  // both ends of three pipes
  int needed = open_now + kSignals + kWhileStarting;
  for (const LaunchRequest& request : requests) {
    const int plain = request.output == RankOutput::kRankZeroPlain ? 1 : 0;
    const int before_last = 2 * std::max(request.ranks - 1 - plain, 0);
    needed += kOwn + before_last + (with_store ? request.ranks - 1 : 0);
  }
  return needed + 2 * static_cast<int>(requests.size() - 1);
}

int open_descriptors(int limit) {
  constexpr int kMany = 4096;  // with more there is no need to count
  int count = 0;
  for (int i = 0; i < std::min(limit, kMany); ++i) count += fcntl(i, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

// Checked in advance, since a rank whose connection to the store is not accepted would get no
// error.
std::string why_too_few_descriptors(std::span<const LaunchRequest> requests, bool with_store) {
  rlimit limit{};
  constexpr rlim_t kMost = 1 << 20;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > kMost) return {};
  const int allowed = static_cast<int>(limit.rlim_cur);
  const int needed = descriptors_needed(requests, open_descriptors(allowed), with_store);
  if (needed <= allowed) return {};
  int ranks = 0;
  for (const LaunchRequest& request : requests) ranks += request.ranks;
  return fmt::format("{}; to launch {} ranks it needs {}", posix::error_text(EMFILE), ranks,
                     needed);
}

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
  if (const auto why = why_too_few_descriptors(requests, are_ours); !why.empty())
    throw Error(ErrorCode::kSystem, kNoPeer, "launcher: " + why);
  const std::string suspicion = why_too_few_descriptors(requests, true);
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

}  // namespace kolo
