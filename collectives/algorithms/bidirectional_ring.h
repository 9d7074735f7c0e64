// All-reduce, reduce-scatter and all-gather over two rings in opposite directions: see
// bidirectional_ring.cpp.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Input and output: `count` elements in `size` chunks.
Schedule bidirectional_ring_all_reduce(const ScheduleRequest& request);

// Input: `count` elements; output: chunk `rank`.
Schedule bidirectional_ring_reduce_scatter(const ScheduleRequest& request);

// Input: chunk `rank`; output: `count` elements.
Schedule bidirectional_ring_all_gather(const ScheduleRequest& request);

// Elements that one rank sends, with segments of `segment` elements. An all-gather does not send a
// rank's own data back to it, and the two neighbours gave different segments.
std::size_t bidirectional_ring_all_reduce_sent(int rank, int size, std::size_t count,
                                               std::size_t segment);
std::size_t bidirectional_ring_reduce_scatter_sent(int rank, int size, std::size_t count);
std::size_t bidirectional_ring_all_gather_sent(int rank, int size, std::size_t count,
                                               std::size_t segment);

}  // namespace kolo::inline v0
