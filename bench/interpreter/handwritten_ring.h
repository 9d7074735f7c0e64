// The ring all-reduce as one would write it for its own sake, to be held against the executor.
//
// The same work as the schedule of algorithms/ring.cpp, in the same order: the same chunks,
// segments, slices and turns, the same slots and views, the same reduction kernel. There is no
// schedule, no table, no header, and no way to stop in the middle and go on later: whoever must
// wait spins.
#pragma once

#include <cstddef>

#include "collectives/element.h"
#include "transports/transport.h"

namespace kolo::bench {

// Spins a while, then yields: there may be fewer cores than ranks.
class SpinWait {
 public:
  void wait();

 private:
  int spins_ = 0;
};

// float32 sums of `count` elements in segments of `segment_bytes`.
struct HandwrittenRing {
  int rank = 0;
  int size = 2;
  Channel* left = nullptr;
  Channel* right = nullptr;
  std::size_t segment_bytes = 0;
  ReduceKernel kernel = nullptr;

  void all_reduce(const float* in, float* out, std::size_t count) const;

  // Of two ranks, who answer in place: turns [0, turns()) in order. When both ranks' turns are
  // played one after the other by one thread, none has to wait.
  std::size_t turns_of_two(std::size_t count) const;
  void turn_of_two(const float* in, float* out, std::size_t count, std::size_t turn) const;

 private:
  struct Chunk;
  Chunk chunk(int steps_to_the_left, std::size_t count) const;
  void turn_of_many(const float* in, float* out, std::size_t count, std::size_t turn) const;
  void pass_on_sum(const float* in, float* kept, const Chunk& piece) const;
  void pass_on(float* out, const Chunk& piece) const;
};

}  // namespace kolo::bench
