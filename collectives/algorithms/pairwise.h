// Pairwise and direct all-to-all: see pairwise.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo {

// Of 2 n chunks, the input holds the first n (chunk p is for rank p), the output the others (chunk
// n + p is from rank p).
Schedule pairwise_all_to_all(const ScheduleRequest& request);
Schedule direct_all_to_all(const ScheduleRequest& request);

// The elements that a rank sends: all that it gives but what it keeps.
std::size_t pairwise_all_to_all_sent(std::size_t gives, std::size_t keeps);

}  // namespace kolo
