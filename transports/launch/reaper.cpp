#include "transports/launch/reaper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <vector>

#include "transports/posix/thread.h"

namespace kolo::inline v0::launch {
namespace {

constexpr pid_t kGoodbye = 0;
constexpr int kPatienceMs = 3000;  // for the answer; a busy machine needs a part of it

// Main loop of the reaper process. `groups` was allocated before the fork.
[[noreturn]] void guard(int pipe, std::vector<pid_t>& groups, EnvironmentSearch& own_processes) {
  setsid();  // signals to the launcher's group or terminal do not reach it
  prctl(PR_SET_NAME, kReaperName);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  if (pipe != 0) dup2(pipe, 0);
  close_range(1, ~0U, 0);  // it must keep no output open
  std::size_t count = 0;
  while (true) {
    pid_t group = kGoodbye;
    const ssize_t got = read(0, &group, sizeof group);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof group) break;
    if (group == kGoodbye) _exit(0);
    if (count < groups.size()) groups[count++] = group;
  }
  for (std::size_t i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
  own_processes.kill_all();
  _exit(0);
}

}  // namespace

Reaper::Reaper(int ranks, EnvironmentSearch& own_processes) {
  std::vector<pid_t> groups(static_cast<std::size_t>(ranks));
  int ends[2];
  // Not a pipe: a write to a killed reaper must not cause SIGPIPE (MSG_NOSIGNAL needs a socket).
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    posix::throw_system("launcher: socketpair");
  }
  const posix::Descriptor read_end(ends[0]);
  line_ = posix::Descriptor(ends[1]);
  pid_ = fork();
  if (pid_ == 0) guard(ends[0], groups, own_processes);
  if (pid_ < 0) posix::throw_no_process("launcher: fork");
}

Reaper::~Reaper() {
  report(kGoodbye);
  // Its end of the socket pair closes when it ends.
  pollfd end{line_.get(), POLLIN, 0};
  int ready = 0;
  while ((ready = poll(&end, 1, kPatienceMs)) < 0 && errno == EINTR) {
  }
  if (ready == 0) {
    std::fprintf(
        stderr,
        "kolo: the launcher's reaper process, pid %d, did not end within %d s (it may have been "
        "stopped): it was killed\n",
        pid_, kPatienceMs / 1000);
    kill(pid_, SIGKILL);
  }
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Reaper::report(pid_t group) const {
  while (send(line_.get(), &group, sizeof group, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

}  // namespace kolo::inline v0::launch
