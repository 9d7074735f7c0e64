// Broadcast as a scatter and an all-gather: see scatter_allgather.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Input of the root and output of all: `count` elements in `size` chunks. Input and output are the
// same memory.
Schedule scatter_allgather_broadcast(const ScheduleRequest& request);

// Elements that one rank sends.
std::size_t scatter_allgather_broadcast_sent(int rank, int size, int root, std::size_t count);

}  // namespace kolo::inline v0
