// All-reduce by recursive multiplying: see recursive_multiplying.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Input and output: `count` elements, one chunk.
Schedule recursive_multiplying_all_reduce(const ScheduleRequest& request);

// Elements that one rank sends.
std::size_t recursive_multiplying_all_reduce_sent(int rank, int size, std::size_t count);

// Messages in sequence from the first message to the last result.
int recursive_multiplying_all_reduce_hops(int size);

}  // namespace kolo::inline v0
