// A process that outlives the launcher by a moment, to end the ranks' process groups should it be
// killed.
//
// It holds one end of a pipe. Ranks report their group there before they start their program; the
// launcher says goodbye when all is over. The end of the pipe without a goodbye means that the
// launcher is gone.
#pragma once

#include <sys/types.h>

#include "transports/posix/descriptor.h"

namespace kolo::launch {

class Reaper {
 public:
  explicit Reaper(int ranks);
  ~Reaper();  // says goodbye; one that does not answer, as it was stopped, is killed, and named
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // For the rank's own process, between fork and exec: only async-signal-safe calls.
  void report(pid_t group) const;

 private:
  posix::Descriptor line_;
  pid_t pid_ = -1;
};

}  // namespace kolo::launch
