// Reaper: a process that kills the ranks' process groups if the launcher is killed, and processes
// with other groups that have the job's variables.
//
// It holds one end of a socket pair. Ranks report their process group there before they start their
// program. The launcher sends a goodbye when the job is over. If the connection closes without a
// goodbye, the launcher is gone. It is a child of fork() without a program of its own, so it does
// not allocate memory: see environment_search.h.
#pragma once

#include <sys/types.h>

#include "transports/launch/environment_search.h"
#include "transports/posix/descriptor.h"

namespace kolo::inline v0::launch {

class Reaper {
 public:
  // `own_processes`: finds this job's processes by their environment.
  Reaper(int ranks, EnvironmentSearch& own_processes);
  ~Reaper();  // sends the goodbye; kills and reports a reaper that does not answer
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Called in the rank's own process, between fork and exec: only async-signal-safe calls.
  void report(pid_t group) const;

  pid_t pid() const { return pid_; }

 private:
  posix::Descriptor line_;
  pid_t pid_ = -1;
};

}  // namespace kolo::inline v0::launch
