// Bruck's all-to-all: see bruck.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// There are 2 n chunks of equal length. The input holds the first n (chunk p is for rank p), the
// output the last n (chunk n + p is from rank p).
Schedule bruck_all_to_all(const ScheduleRequest& request);

// Elements that a rank sends, if its share for each rank has `share` elements.
std::size_t bruck_all_to_all_sent(int size, std::size_t share);

}  // namespace kolo::inline v0
