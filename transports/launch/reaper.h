// Reaper: a process that kills the ranks' process groups if the launcher is killed, and processes
// with other groups that have the job's variables.
//
// It holds one end of a socket pair. Ranks report their process group there before they start their
// program. The launcher sends a goodbye when the job is over. If the connection closes without a
// goodbye, the launcher is gone.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::launch {

class Reaper {
 public:
  // `variables`: "NAME=VALUE", which only this job's processes have in their environment.
  Reaper(int ranks, const std::vector<std::string>& variables);
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
