// Turns of arms that train at the same time: one arm trains an epoch while the others wait. So a
// machine that is busy for a while slows down all arms.
//
// The processes of all arms exist. Each rank of an arm reads one byte from the arm's pipe before
// each epoch, so a waiting rank uses no core and is in no operation. When every arm that still runs
// waits, the process that launched them writes the bytes of the next arm.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "train/experiment/inherited_pipe.h"

namespace kolo::train {

// In the launching process. Any thread may call it.
class Turns {
 public:
  // `ranks`: the number of ranks of each arm.
  explicit Turns(const std::vector<int>& ranks);

  // The descriptor from which the ranks of an arm read.
  int descriptor(std::size_t arm) const { return arms_[arm].pipe.reading_end(); }
  // The arm's ranks wait for their turn.
  void waits(std::size_t arm);
  // The arm has no more ranks.
  void ended(std::size_t arm);

 private:
  enum class State { busy, waiting, ended };
  struct Arm {
    int ranks = 0;
    InheritedPipe pipe;
    State state = State::busy;
  };

  void set(std::size_t arm, State state);

  std::mutex mutex_;
  std::vector<Arm> arms_;
  std::size_t next_ = 0;
};

// In a rank: returns when it is the arm's turn, or the launching process is gone.
void wait_for_turn(int descriptor);

}  // namespace kolo::train
