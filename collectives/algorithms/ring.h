// Ring all-reduce, reduce-scatter and all-gather: see ring.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Input and output: `count` elements in `size` chunks. ScheduleRequest::can_answer is used with two
// ranks only.
Schedule ring_all_reduce(const ScheduleRequest& request);

// Input: `count` elements; output: chunk `rank`.
Schedule ring_reduce_scatter(const ScheduleRequest& request);

// Input: chunk `rank`; output: `count` elements.
Schedule ring_all_gather(const ScheduleRequest& request);

// Elements that one rank sends.
std::size_t ring_all_reduce_sent(int rank, int size, std::size_t count);
std::size_t ring_reduce_scatter_sent(int rank, int size, std::size_t count);
std::size_t ring_all_gather_sent(int rank, int size, std::size_t count);

}  // namespace kolo::inline v0
