// Reduce-scatter by recursive halving, all-gather by recursive doubling, and all-reduce as both in
// sequence: see halving_doubling.cpp.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Input: `count` elements in `size` chunks; output: chunk `rank`.
Schedule recursive_halving_reduce_scatter(const ScheduleRequest& request);

// Input: chunk `rank`; output: `count` elements.
Schedule recursive_doubling_all_gather(const ScheduleRequest& request);

// Input and output: `count` elements in `size` chunks.
Schedule halving_doubling_all_reduce(const ScheduleRequest& request);

// Elements that one rank sends.
std::size_t recursive_halving_reduce_scatter_sent(int rank, int size, std::size_t count);
std::size_t recursive_doubling_all_gather_sent(int rank, int size, std::size_t count);
std::size_t halving_doubling_all_reduce_sent(int rank, int size, std::size_t count);

}  // namespace kolo::inline v0
