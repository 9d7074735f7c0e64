// All-reduce, broadcast and reduce over two binary trees at once: see double_tree.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Input and output: `count` elements in two chunks.
Schedule double_tree_all_reduce(const ScheduleRequest& request);

// Input of the root and output of all: `count` elements in two chunks. Input and output are the
// same memory.
Schedule double_tree_broadcast(const ScheduleRequest& request);

// Input of all and output of the root: `count` elements in two chunks.
Schedule double_tree_reduce(const ScheduleRequest& request);

// Elements that one rank sends.
std::size_t double_tree_all_reduce_sent(int rank, int size, std::size_t count);
std::size_t double_tree_broadcast_sent(int rank, int size, int root, std::size_t count);
std::size_t double_tree_reduce_sent(int rank, int root, std::size_t count);

}  // namespace kolo::inline v0
