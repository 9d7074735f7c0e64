// Which cores each rank of a host may run on, where a launcher decides it.
//
// A rank that stays near one memory controller finds its memory there: pages come from the node of
// the core that first touches them (NUMA), and ranks touch theirs before they use them. Neighbours
// in the order of ranks, who talk most, share a node.
#pragma once

#include <string_view>
#include <vector>

namespace kolo::launch {

enum class Binding {
  kNone,   // to all cores that the launcher may use
  kCores,  // to equal shares of the cores, each of its own; to nodes where there are fewer cores
  kNodes,  // to the nodes that its share of the cores lies on
};

// By node, the cores of it that this process may run on; nodes without any are left out. All in
// one where the system tells of no nodes.
std::vector<std::vector<int>> cores_by_node();

// "0-2,8" is 0, 1, 2 and 8; what is no list of cores is none.
std::vector<int> parse_core_list(std::string_view text);

// The cores of each of `ranks`; empty for kNone. Every rank has at least one.
std::vector<std::vector<int>> bind_ranks(const std::vector<std::vector<int>>& nodes, int ranks,
                                         Binding binding);

}  // namespace kolo::launch
