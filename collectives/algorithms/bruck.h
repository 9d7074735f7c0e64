// Bruck's all-to-all: see bruck.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo {

// Of 2 n chunks, all equally long, the input holds the first n (chunk p is for rank p), the output
// the others (chunk n + p is from rank p).
Schedule bruck_all_to_all(const ScheduleRequest& request);

// The elements that a rank sends, of `share` for each rank.
std::size_t bruck_all_to_all_sent(int size, std::size_t share);

}  // namespace kolo
