// Gather and scatter without a detour: see direct.cpp for the idea.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo {

// Chunk r of the data is rank r's; only the root holds all.
Schedule direct_gather(const ScheduleRequest& request);
Schedule direct_scatter(const ScheduleRequest& request);

// From rank `root` to rank `peer`: no other rank has a part in it.
Schedule direct_message(const ScheduleRequest& request);

// The elements that one rank sends; `mine`: of its chunk, `all`: of all chunks.
std::size_t direct_gather_sent(int rank, int root, std::size_t mine);
std::size_t direct_scatter_sent(int rank, int root, std::size_t roots, std::size_t all);

}  // namespace kolo
