// Vote of all ranks on a request to end (Ctrl-C), so that all end after the same iteration.
//
// The first SIGINT or SIGTERM only sets a flag. From then on both have their default effect again,
// so a second one ends the process at once. Each rank gets the signal at another time, so the ranks
// vote before an iteration: an all-reduce of one number, on channels of its own.
#pragma once

#include <string_view>

#include "collectives/communicator.h"

namespace kolo::train {

// One per process.
class StopVote {
 public:
  // Collective. Installs the handlers. `end`: when the ranks will end, as "this iteration", for the
  // text that rank 0 writes.
  StopVote(Communicator& communicator, std::string_view end);
  // Restores the default effect of the signals.
  ~StopVote();
  StopVote(const StopVote&) = delete;
  StopVote& operator=(const StopVote&) = delete;

  // Collective: the signal that any rank has received; 0 if none has. No exchange of another
  // communicator may be in flight.
  int vote();

 private:
  Communicator communicator_;
};

}  // namespace kolo::train
