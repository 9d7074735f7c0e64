// Ring all-reduce written by hand, as the reference for the executor.
//
// It does the same work as the schedule of algorithms/ring.cpp in the same order: the same chunks,
// segments, slices and turns, slots and views, and reduction kernel. It has no schedule, no table
// and no header, and cannot stop and continue: a waiting rank spins.
#pragma once

#include <cstddef>

#include "collectives/element.h"
#include "transports/transport.h"

namespace kolo::bench {

// Spins, then yields, as there may be fewer cores than ranks.
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

  // For two ranks that answer in place: turns [0, turns()) in order. If one thread runs each turn
  // for both ranks, neither has to wait.
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
