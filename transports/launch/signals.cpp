#include "transports/launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace kolo::inline v0::launch {
namespace {

constexpr int kPassedOn[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                             SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

bool is_ignored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals() {
  // No signal for a stopped child. And children must stay zombies, even if the parent ignored
  // SIGCHLD.
  struct sigaction child {};
  child.sa_handler = SIG_DFL;
  child.sa_flags = SA_NOCLDSTOP;
  sigaction(SIGCHLD, &child, &previous_child_);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : kPassedOn) {
    if (!is_ignored(signal)) sigaddset(&set, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set, &previous_mask_);
  descriptor_ = posix::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (descriptor_.is_open()) return;
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
  posix::throw_system("launcher: signalfd");
}

Signals::~Signals() {
  while (next()) {  // drops late signals, which have no rank to go to
  }
  sigaction(SIGCHLD, &previous_child_, nullptr);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

std::optional<Signals::Arrived> Signals::next() {
  signalfd_siginfo info{};
  if (read(descriptor_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return Arrived{static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid)};
}

bool is_request_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace kolo::inline v0::launch
