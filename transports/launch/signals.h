// The signals that a launcher waits for, as a descriptor, for as long as this object lives.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>

#include "transports/posix/descriptor.h"

namespace kolo::launch {

class Signals {
 public:
  struct Arrived {
    int signal = 0;
    pid_t from = 0;  // SIGCHLD: the child that ended first of all that this one signal speaks for
  };

  // Blocks them for this thread, and the threads it starts. Signals that the launcher was told to
  // ignore (nohup) stay so.
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

// True for those that ask to end.
bool is_request_to_end(int signal);

}  // namespace kolo::launch
