// Pipelined binomial trees: see binomial_tree.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Every rank ends with the root's `count` elements, as one chunk. Input and output are the same
// memory.
Schedule binomial_tree_broadcast(const ScheduleRequest& request);

// Input of all and output of the root: `count` elements, one chunk.
Schedule binomial_tree_reduce(const ScheduleRequest& request);

// Input: chunk `rank`; output of the root: all chunks.
Schedule binomial_tree_gather(const ScheduleRequest& request);

// Input of the root: all chunks; output: chunk `rank`.
Schedule binomial_tree_scatter(const ScheduleRequest& request);

// Elements that one rank sends.
std::size_t binomial_tree_broadcast_sent(int rank, int size, int root, std::size_t count);
std::size_t binomial_tree_reduce_sent(int rank, int root, std::size_t count);
std::size_t binomial_tree_gather_sent(int rank, int size, int root, std::size_t count);
std::size_t binomial_tree_scatter_sent(int rank, int size, int root, std::size_t count);

}  // namespace kolo::inline v0
