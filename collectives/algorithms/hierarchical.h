// Inside hosts, then across: see hierarchical.cpp for the idea, and the files beside it for the
// collectives other than all-reduce.
//
// All take the hosts of the request, in any order and of any sizes; with none named they take all
// ranks to be on one host.
#pragma once

#include <cstddef>

#include "collectives/schedule.h"

namespace kolo {

// Input and output: `count` elements.
Schedule hierarchical_all_reduce(const ScheduleRequest& request);

// hierarchical_rooted.cpp. As double_tree_broadcast; input: `count` elements, output of the root
// as many.
Schedule hierarchical_broadcast(const ScheduleRequest& request);
Schedule hierarchical_reduce(const ScheduleRequest& request);

// hierarchical_shares.cpp. Input: `count` elements in `size` chunks, output: chunk `rank`; and the
// other way round.
Schedule hierarchical_reduce_scatter(const ScheduleRequest& request);
Schedule hierarchical_all_gather(const ScheduleRequest& request);

// As dissemination_barrier.
Schedule hierarchical_barrier(const ScheduleRequest& request);

// The elements that `request.rank` sends, and those of them that leave its host.
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

}  // namespace kolo
