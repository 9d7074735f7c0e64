// Core binding of the ranks of a host, set by the launcher.
//
// Pages come from the NUMA node of the core that first touches them. So a rank that stays on one
// node has its memory there. Neighbours in rank order, which exchange most data, share a node.
#pragma once

#include <string_view>
#include <vector>

namespace kolo::inline v0::launch {

enum class Binding {
  kAuto,   // kCores if there are as many cores as ranks, else kNone
  kNone,   // all cores that the launcher may use
  kCores,  // disjoint, equal shares of the cores; kNodes if there are fewer cores than ranks
  kNodes,  // all cores of the nodes that contain the rank's share
};

// By node, its cores that this process may use; nodes without any are omitted. One node with all
// cores if the system reports no nodes. Threads of one physical core are neighbours.
std::vector<std::vector<int>> cores_by_node();

// "0-2,8" is 0, 1, 2 and 8; empty for an invalid list.
std::vector<int> parse_core_list(std::string_view text);

// The cores of each of `ranks`; empty for kNone. Every rank has at least one.
std::vector<std::vector<int>> bind_ranks(const std::vector<std::vector<int>>& nodes, int ranks,
                                         Binding binding);

// Whether the process that started this one, most likely a launcher, has bound it to a part of its
// own cores.
bool is_bound_by_parent();

}  // namespace kolo::inline v0::launch
