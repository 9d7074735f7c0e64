// Reaper: a process that kills the ranks' process groups if the launcher is killed.
//
// It holds one end of a socket pair. Ranks report their process group there before they start their
// program. The launcher sends a goodbye when the job is over. If the connection closes without a
// goodbye, the launcher is gone.
#pragma once

#include <sys/types.h>

#include "transports/posix/descriptor.h"

namespace kolo::launch {

class Reaper {
 public:
  explicit Reaper(int ranks);
  ~Reaper();  // sends the goodbye; kills and reports a reaper that does not answer
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Called in the rank's own process, between fork and exec: only async-signal-safe calls.
  void report(pid_t group) const;

 private:
  posix::Descriptor line_;
  pid_t pid_ = -1;
};

}  // namespace kolo::launch
