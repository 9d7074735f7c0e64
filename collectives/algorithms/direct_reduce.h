// Reductions and all-gather without intermediate ranks: see direct_reduce.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Input and output: `count` elements, one chunk.
Schedule one_shot_all_reduce(const ScheduleRequest& request);

// Input and output: `count` elements in `size` chunks.
Schedule two_shot_all_reduce(const ScheduleRequest& request);

// Input: `count` elements in `size` chunks; output: chunk `rank`.
Schedule direct_reduce_scatter(const ScheduleRequest& request);

// Input: chunk `rank`; output: `count` elements.
Schedule direct_all_gather(const ScheduleRequest& request);

// Elements that one rank sends.
std::size_t one_shot_all_reduce_sent(int rank, int size, std::size_t count);
std::size_t two_shot_all_reduce_sent(int rank, int size, std::size_t count);
std::size_t direct_reduce_scatter_sent(int rank, int size, std::size_t count);
std::size_t direct_all_gather_sent(int rank, int size, std::size_t count);

}  // namespace kolo::inline v0
