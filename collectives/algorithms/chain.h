// Scans, broadcast and reduce along a chain of ranks: see chain.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Output: the reduction over ranks 0 to `rank`.
Schedule chain_scan(const ScheduleRequest& request);

// Output: the reduction over ranks 0 to `rank` - 1; rank 0 has no output.
Schedule chain_exclusive_scan(const ScheduleRequest& request);

// Input of the root and output of all: `count` elements, one chunk. Input and output are the same
// memory.
Schedule chain_broadcast(const ScheduleRequest& request);

// Input of all and output of the root: `count` elements, one chunk.
Schedule chain_reduce(const ScheduleRequest& request);

// As chain_reduce, with the operands in the order of the ranks for any root: ((0 op 1) op 2) ...
Schedule ordered_chain_reduce(const ScheduleRequest& request);

// Elements that one rank sends; the first for both scans.
std::size_t chain_scan_sent(int rank, int size, std::size_t count);
std::size_t chain_broadcast_sent(int rank, int size, int root, std::size_t count);
std::size_t chain_reduce_sent(int rank, int root, std::size_t count);
std::size_t ordered_chain_reduce_sent(int rank, int size, int root, std::size_t count);

}  // namespace kolo::inline v0
