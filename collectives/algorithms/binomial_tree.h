// Pipelined binomial-tree broadcast: see binomial_tree.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo {

// Input of the root and output of all: `count` elements, one chunk. Input and output are one
// memory.
Schedule binomial_tree_broadcast(const ScheduleRequest& request);

// The elements that one rank sends.
std::size_t binomial_tree_broadcast_sent(int rank, int size, int root, std::size_t count);

}  // namespace kolo
