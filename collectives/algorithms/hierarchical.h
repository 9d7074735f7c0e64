// Hierarchical collectives, inside hosts first, then across hosts: see hierarchical.cpp for the
// idea. The other files of this name contain the collectives other than all-reduce.
//
// All take the hosts of the request, in any order and of any sizes. Without hosts in the request,
// all ranks are on one host.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Input and output: `count` elements.
Schedule hierarchical_all_reduce(const ScheduleRequest& request);

// In hierarchical_rooted.cpp. Broadcast: as double_tree_broadcast. Reduce: input of all and output
// of the root, `count` elements.
Schedule hierarchical_broadcast(const ScheduleRequest& request);
Schedule hierarchical_reduce(const ScheduleRequest& request);

// In hierarchical_shares.cpp. Reduce-scatter: input `count` elements in `size` chunks, output chunk
// `rank`. All-gather: the other way round.
Schedule hierarchical_reduce_scatter(const ScheduleRequest& request);
Schedule hierarchical_all_gather(const ScheduleRequest& request);

// In hierarchical_rooted.cpp. Chunks as in dissemination_barrier.
Schedule hierarchical_barrier(const ScheduleRequest& request);

// Elements that `request.rank` sends, and how many of them leave its host.
struct Traffic {
  std::size_t sent = 0;
  std::size_t across = 0;
};
Traffic hierarchical_all_reduce_traffic(const ScheduleRequest& request, std::size_t count);
Traffic hierarchical_broadcast_traffic(const ScheduleRequest& request, std::size_t count);
Traffic hierarchical_reduce_traffic(const ScheduleRequest& request, std::size_t count);
Traffic hierarchical_reduce_scatter_traffic(const ScheduleRequest& request, std::size_t count);
Traffic hierarchical_all_gather_traffic(const ScheduleRequest& request, std::size_t count);
Traffic hierarchical_barrier_traffic(const ScheduleRequest& request);

}  // namespace kolo::inline v0
