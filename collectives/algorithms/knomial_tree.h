// Pipelined k-nomial trees: see knomial_tree.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// `radix`: 2 to 8 are sensible; below 2 is std::invalid_argument.

// Input of the root and output of all: `count` elements, one chunk. Input and output are the same
// memory.
Schedule knomial_tree_broadcast(const ScheduleRequest& request, int radix);

// Input of all and output of the root: `count` elements, one chunk.
Schedule knomial_tree_reduce(const ScheduleRequest& request, int radix);

// Elements that one rank sends.
std::size_t knomial_tree_broadcast_sent(int rank, int size, int root, int radix, std::size_t count);
std::size_t knomial_tree_reduce_sent(int rank, int root, std::size_t count);

}  // namespace kolo::inline v0
