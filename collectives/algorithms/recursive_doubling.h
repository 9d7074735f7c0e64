// All-reduce by recursive doubling: see recursive_doubling.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Input and output: `count` elements, one chunk.
Schedule recursive_doubling_all_reduce(const ScheduleRequest& request);

// Elements that one rank sends.
std::size_t recursive_doubling_all_reduce_sent(int rank, int size, std::size_t count);

}  // namespace kolo::inline v0
