// Signals of a launcher, received through a descriptor (signalfd) while this object lives.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::launch {

class Signals {
 public:
  struct Arrived {
    int signal = 0;
    pid_t from = 0;  // SIGCHLD: the first to end of all children that this one signal stands for
  };

  // Blocks the signals for this thread and the threads that it starts. Ignored signals (nohup) stay
  // ignored.
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_.get(); }
  std::optional<Arrived> next();  // without blocking

 private:
  posix::Descriptor descriptor_;
  sigset_t previous_mask_{};
  struct sigaction previous_child_ {};
};

// True for signals that request the end: SIGINT, SIGTERM, SIGHUP, SIGQUIT.
bool is_request_to_end(int signal);

}  // namespace kolo::inline v0::launch
