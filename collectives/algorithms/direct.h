// Gather, scatter and messages without intermediate ranks: see direct.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Chunk r of the data belongs to rank r; only the root holds all chunks.
Schedule direct_gather(const ScheduleRequest& request);
Schedule direct_scatter(const ScheduleRequest& request);

// Message from rank `root` to rank `peer`; no other rank takes part.
Schedule direct_message(const ScheduleRequest& request);

// Elements that one rank sends. `mine` (`roots`): elements of its (the root's) chunk; `all`: of all
// chunks.
std::size_t direct_gather_sent(int rank, int root, std::size_t mine);
std::size_t direct_scatter_sent(int rank, int root, std::size_t roots, std::size_t all);

}  // namespace kolo::inline v0
