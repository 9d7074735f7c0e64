#include "transports/launch/rank_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "transports/error.h"
#include "transports/posix/thread.h"

namespace kolo::inline v0::launch {
namespace {

constexpr int kLookEveryMs = 200;
constexpr int kLongestStopMs = 3000;

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) posix::throw_system("launcher: pipe");
    from = posix::Descriptor(ends[0]);
    to = posix::Descriptor(ends[1]);
  }

  posix::Descriptor from;
  posix::Descriptor to;
};

// Both ends of a lifeline, a socket, as a write to a pipe without a reader would be a signal.
struct Lifeline {
  explicit Lifeline(bool is_wanted) {
    int ends[2];
    if (!is_wanted) return;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      posix::throw_system("launcher: socketpair");
    from = posix::Descriptor(ends[0]);
    to = posix::Descriptor(ends[1]);
  }

  posix::Descriptor from;  // the launcher's
  posix::Descriptor to;    // the process's
};

// This process's environment, in which `variables` replace those of the same names.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_replaced =
        std::any_of(variables.begin(), variables.end(),
                    [&](const auto& variable) { return variable.first == name; });
    if (!is_replaced) result.emplace_back(text);
  }
  for (const auto& variable : variables) result.push_back(variable.first + "=" + variable.second);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Cores to bind a process to, in the kernel's format.
class CoreSet {
 public:
  explicit CoreSet(const std::vector<int>& cores) {
    if (cores.empty()) return;
    const auto size = static_cast<std::size_t>(std::ranges::max(cores)) + 1;
    bytes_ = CPU_ALLOC_SIZE(size);
    set_.resize((bytes_ + sizeof(cpu_set_t) - 1) / sizeof(cpu_set_t));
    CPU_ZERO_S(bytes_, set_.data());
    for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), bytes_, set_.data());
  }

  // If the kernel refuses (a core went offline), the process stays unbound.
  void bind() const {
    if (bytes_ > 0) sched_setaffinity(0, bytes_, set_.data());
  }

 private:
  std::size_t bytes_ = 0;
  std::vector<cpu_set_t> set_;
};

struct ChildPlan {
  char** arguments;
  char** environment;
  int output;  // -1: the launcher's own
  int errors;
  int input;    // -1: empty
  int failure;  // pipe for errno if exec fails
  pid_t launcher;
  const CoreSet& cores;
  const std::vector<int>& descriptors;
};

// Between fork and exec: no allocation, no lock.
[[noreturn]] void become_rank(const ChildPlan& plan, const Reaper& guardian) {
  setpgid(0, 0);
  guardian.report(getpid());
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.launcher) _exit(1);  // the launcher died before prctl
  plan.cores.bind();
  const int input = plan.input >= 0 ? plan.input : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input >= 0) dup2(input, STDIN_FILENO);
  if (plan.output >= 0) dup2(plan.output, STDOUT_FILENO);
  if (plan.errors >= 0) dup2(plan.errors, STDERR_FILENO);
  for (const int descriptor : plan.descriptors) fcntl(descriptor, F_SETFD, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(plan.arguments[0], plan.arguments, plan.environment);
  const int error = errno;
  while (write(plan.failure, &error, sizeof error) < 0 && errno == EINTR) {
  }
  _exit(127);
}

bool is_stopped(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

// Blocks until the child has started its program; returns 0, or errno if exec failed. If the child
// was stopped before and does not continue within kLongestStopMs, it is killed, and Error is
// thrown.
int start_error(int pipe, pid_t child) {
  pollfd news{pipe, POLLIN, 0};
  for (int stopped_for_ms = 0; poll(&news, 1, kLookEveryMs) <= 0;) {
    stopped_for_ms = is_stopped(child) ? stopped_for_ms + kLookEveryMs : 0;
    if (stopped_for_ms < kLongestStopMs) continue;
    kill(-child, SIGKILL);
    waitpid(child, nullptr, 0);
    throw Error(ErrorCode::kSystem, kNoPeer,
                fmt::format("launcher: the process of a rank, pid {}, was stopped before it could "
                            "start its program, and did not continue for {} s: it was killed",
                            child, kLongestStopMs / 1000));
  }
  int error = 0;
  ssize_t got = 0;
  while ((got = read(pipe, &error, sizeof error)) < 0 && errno == EINTR) {
  }
  return got == sizeof error ? error : 0;
}

}  // namespace

std::string ExitStatus::text() const {
  if (!by_signal) return "exited with code " + std::to_string(value);
  return "was killed by signal " + std::to_string(value) + " (" + strsignal(value) + ")";
}

RankProcess::RankProcess(const RankProgram& program, const Reaper& guardian) {
  std::vector<std::string> command = program.command;
  std::vector<std::string> environment = environment_with(program.variables);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  const CoreSet cores(program.cores);
  Pipe output, errors, failure;
  Lifeline input(program.has_lifeline);
  ChildPlan plan{const_cast<char**>(arguments.data()),
                 const_cast<char**>(variables.data()),
                 program.has_plain_output ? -1 : output.to.get(),
                 program.has_plain_output ? -1 : errors.to.get(),
                 input.to.get(),
                 failure.to.get(),
                 getpid(),
                 cores,
                 program.descriptors};
  pid_ = fork();
  if (pid_ == 0) become_rank(plan, guardian);
  if (pid_ < 0) posix::throw_no_process("launcher: fork");
  setpgid(pid_, pid_);  // parent and child both do it, since either may run first
  failure.to.close();
  if (const int error = start_error(failure.from.get(), pid_); error != 0) {
    waitpid(pid_, nullptr, 0);
    throw CannotStart{error};
  }
  if (program.has_plain_output) return;
  lifeline_ = std::move(input.from);
  output_ = std::move(output.from);
  errors_ = std::move(errors.from);
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      lifeline_(std::move(other.lifeline_)),
      is_running_(other.is_running_),
      ending_(other.ending_) {}

RankProcess::~RankProcess() {
  if (pid_ < 0) return;
  signal_group(SIGKILL);
  while (waitpid(-pid_, nullptr, 0) > 0 || errno == EINTR) {  // all children in the group
  }
}

bool RankProcess::look() {
  if (!is_running_) return false;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
  if (info.si_pid == 0) return false;
  is_running_ = false;
  ending_ = {info.si_code != CLD_EXITED, info.si_status};
  return true;
}

void RankProcess::signal_group(int signal) {
  if (!lifeline_.is_open() || signal == SIGKILL) {
    kill(-pid_, signal);
    return;
  }
  const auto byte = static_cast<unsigned char>(signal);
  send(lifeline_.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace kolo::inline v0::launch
