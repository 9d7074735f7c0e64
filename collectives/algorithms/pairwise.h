// Pairwise and direct all-to-all: see pairwise.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// There are 2 n chunks. The input holds the first n (chunk p is for rank p), the output the last n
// (chunk n + p is from rank p).
Schedule pairwise_all_to_all(const ScheduleRequest& request);
Schedule direct_all_to_all(const ScheduleRequest& request);

// Elements that a rank sends: all of its input except its chunk for itself.
std::size_t pairwise_all_to_all_sent(std::size_t gives, std::size_t keeps);

}  // namespace kolo::inline v0
