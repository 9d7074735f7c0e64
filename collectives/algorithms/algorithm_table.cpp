#include "collectives/algorithms/algorithm_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "collectives/algorithms/bidirectional_ring.h"
#include "collectives/algorithms/binomial_tree.h"
#include "collectives/algorithms/bruck.h"
#include "collectives/algorithms/chain.h"
#include "collectives/algorithms/direct.h"
#include "collectives/algorithms/direct_reduce.h"
#include "collectives/algorithms/dissemination.h"
#include "collectives/algorithms/double_tree.h"
#include "collectives/algorithms/halving_doubling.h"
#include "collectives/algorithms/hierarchical.h"
#include "collectives/algorithms/knomial_tree.h"
#include "collectives/algorithms/pairwise.h"
#include "collectives/algorithms/recursive_doubling.h"
#include "collectives/algorithms/recursive_multiplying.h"
#include "collectives/algorithms/ring.h"
#include "collectives/algorithms/scatter_allgather.h"

namespace kolo::inline v0 {
namespace {

// Algorithms without servers ignore that part of the request.
template <Schedule (*write)(const ScheduleRequest&)>
Schedule over_ranks(const PlanRequest& request) {
  return write(request.ranks);
}

constexpr int kRadix = 4;
template <Schedule (*write)(const ScheduleRequest&, int radix)>
Schedule with_radix(const PlanRequest& request) {
  return write(request.ranks, kRadix);
}

template <Schedule (*write)(const ParameterServerRequest&)>
Schedule over_servers(const PlanRequest& request) {
  return write(request.servers);
}

template <Schedule (*write)(const ParameterServerRequest&)>
Schedule over_servers_in_order(const PlanRequest& request) {
  ParameterServerRequest servers = request.servers;
  servers.in_rank_order = true;
  return write(servers);
}

Algorithm in_order(Algorithm row) {
  row.is_in_order = true;
  return row;
}

Algorithm rank_ordered(Algorithm row) {
  row.is_in_order = row.is_rank_ordered = true;
  return row;
}

Algorithm for_hosts(Algorithm row) {
  row.is_for_hosts = true;
  return row;
}

}  // namespace

const std::vector<Algorithm>& algorithms() {
  static const std::vector<Algorithm> table = {
      {Collective::kAllReduce, "ring", over_ranks<ring_all_reduce>},
      {Collective::kAllReduce, "bidirectional_ring", over_ranks<bidirectional_ring_all_reduce>},
      {Collective::kAllReduce, "halving_doubling", over_ranks<halving_doubling_all_reduce>},
      in_order({Collective::kAllReduce, "recursive_doubling",
                over_ranks<recursive_doubling_all_reduce>}),
      {Collective::kAllReduce, "double_tree", over_ranks<double_tree_all_reduce>},
      rank_ordered({Collective::kAllReduce, "two_shot", over_ranks<two_shot_all_reduce>}),
      rank_ordered({Collective::kAllReduce, "one_shot", over_ranks<one_shot_all_reduce>}),
      in_order({Collective::kAllReduce, "recursive_multiplying",
                over_ranks<recursive_multiplying_all_reduce>}),
      for_hosts({Collective::kAllReduce, "hierarchical", over_ranks<hierarchical_all_reduce>}),
      {Collective::kReduceScatter, "ring", over_ranks<ring_reduce_scatter>},
      {Collective::kReduceScatter, "bidirectional_ring",
       over_ranks<bidirectional_ring_reduce_scatter>},
      {Collective::kReduceScatter, "recursive_halving",
       over_ranks<recursive_halving_reduce_scatter>},
      rank_ordered({Collective::kReduceScatter, "direct", over_ranks<direct_reduce_scatter>}),
      for_hosts(
          {Collective::kReduceScatter, "hierarchical", over_ranks<hierarchical_reduce_scatter>}),
      {Collective::kAllGather, "ring", over_ranks<ring_all_gather>},
      {Collective::kAllGather, "bidirectional_ring", over_ranks<bidirectional_ring_all_gather>},
      {Collective::kAllGather, "recursive_doubling", over_ranks<recursive_doubling_all_gather>},
      {Collective::kAllGather, "direct", over_ranks<direct_all_gather>},
      for_hosts({Collective::kAllGather, "hierarchical", over_ranks<hierarchical_all_gather>}),
      {Collective::kBroadcast, "binomial_tree", over_ranks<binomial_tree_broadcast>},
      {Collective::kBroadcast, "knomial_tree", with_radix<knomial_tree_broadcast>},
      {Collective::kBroadcast, "double_tree", over_ranks<double_tree_broadcast>},
      {Collective::kBroadcast, "scatter_allgather", over_ranks<scatter_allgather_broadcast>},
      {Collective::kBroadcast, "chain", over_ranks<chain_broadcast>},
      for_hosts({Collective::kBroadcast, "hierarchical", over_ranks<hierarchical_broadcast>}),
      {Collective::kBarrier, "dissemination", over_ranks<dissemination_barrier>},
      for_hosts({Collective::kBarrier, "hierarchical", over_ranks<hierarchical_barrier>}),
      {Collective::kPushPull, "parameter_server", over_servers<parameter_server_push_pull>},
      rank_ordered({Collective::kPushPull, "ordered_parameter_server",
                    over_servers_in_order<parameter_server_push_pull>}),
      {Collective::kPush, "parameter_server", over_servers<parameter_server_push>},
      rank_ordered({Collective::kPush, "ordered_parameter_server",
                    over_servers_in_order<parameter_server_push>}),
      {Collective::kPull, "parameter_server", over_servers<parameter_server_pull>},
      {Collective::kReduce, "binomial_tree", over_ranks<binomial_tree_reduce>},
      {Collective::kReduce, "knomial_tree", with_radix<knomial_tree_reduce>},
      {Collective::kReduce, "double_tree", over_ranks<double_tree_reduce>},
      {Collective::kReduce, "chain", over_ranks<chain_reduce>},
      rank_ordered({Collective::kReduce, "ordered_chain", over_ranks<ordered_chain_reduce>}),
      for_hosts({Collective::kReduce, "hierarchical", over_ranks<hierarchical_reduce>}),
      {Collective::kGather, "binomial_tree", over_ranks<binomial_tree_gather>},
      {Collective::kGather, "direct", over_ranks<direct_gather>, true},
      {Collective::kScatter, "binomial_tree", over_ranks<binomial_tree_scatter>},
      {Collective::kScatter, "direct", over_ranks<direct_scatter>, true},
      {Collective::kAllToAll, "pairwise", over_ranks<pairwise_all_to_all>, true},
      {Collective::kAllToAll, "direct", over_ranks<direct_all_to_all>, true},
      {Collective::kAllToAll, "bruck", over_ranks<bruck_all_to_all>},
      rank_ordered({Collective::kScan, "chain", over_ranks<chain_scan>}),
      rank_ordered({Collective::kExclusiveScan, "chain", over_ranks<chain_exclusive_scan>}),
      {Collective::kMessage, "direct", over_ranks<direct_message>},
  };
  return table;
}

std::uint8_t find_algorithm(Collective collective, std::string_view name) {
  const auto& table = algorithms();
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (table[row].collective == collective && (name.empty() || table[row].name == name)) {
      return static_cast<std::uint8_t>(row);
    }
  }
  throw std::invalid_argument(fmt::format("{}: no algorithm '{}'; expected one of {}",
                                          to_string(collective), name,
                                          fmt::join(algorithm_names(collective), ", ")));
}

std::uint8_t find_ordered_algorithm(Collective collective, std::string_view name) {
  const auto& table = algorithms();
  if (!name.empty() && table[find_algorithm(collective, name)].is_in_order) {
    return find_algorithm(collective, name);
  }
  std::vector<std::string_view> ordered;
  for (const Algorithm& algorithm : table) {
    if (algorithm.collective != collective || !algorithm.is_in_order) continue;
    if (name.empty()) return find_algorithm(collective, algorithm.name);
    ordered.push_back(algorithm.name);
  }
  throw std::invalid_argument(fmt::format(
      "{}: algorithm '{}' does not combine the operands in the order of the ranks, which a reducer "
      "that does not commute needs; use one of: {}",
      to_string(collective), name, fmt::join(ordered, ", ")));
}

std::string_view own_lengths_algorithm(Collective collective) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective && algorithm.takes_own_lengths) return algorithm.name;
  }
  return {};
}

std::string_view algorithm_name(std::uint8_t row) {
  return row < algorithms().size() ? algorithms()[row].name : "an unknown algorithm";
}

std::vector<std::string_view> algorithm_names(Collective collective) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) names.push_back(algorithm.name);
  }
  return names;
}

}  // namespace kolo::inline v0
