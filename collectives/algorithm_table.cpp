#include "collectives/algorithm_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "collectives/algorithms/binomial_tree.h"
#include "collectives/algorithms/dissemination.h"
#include "collectives/algorithms/ring.h"
#include "collectives/communicator.h"

namespace kolo {
namespace {

// Algorithms over equal ranks see nothing of servers.
template <Schedule (*write)(const ScheduleRequest&)>
Schedule over_ranks(const PlanRequest& request) {
  return write(request.ranks);
}

Schedule over_servers(const PlanRequest& request) {
  return parameter_server_push_pull(request.servers);
}

}  // namespace

const std::vector<Algorithm>& algorithms() {
  static const std::vector<Algorithm> table = {
      {Collective::kAllReduce, "ring", over_ranks<ring_all_reduce>},
      {Collective::kReduceScatter, "ring", over_ranks<ring_reduce_scatter>},
      {Collective::kAllGather, "ring", over_ranks<ring_all_gather>},
      {Collective::kBroadcast, "binomial_tree", over_ranks<binomial_tree_broadcast>},
      {Collective::kBarrier, "dissemination", over_ranks<dissemination_barrier>},
      {Collective::kPushPull, "parameter_server", over_servers},
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
  throw std::invalid_argument(fmt::format("{}: no algorithm '{}'; there are: {}",
                                          to_string(collective), name,
                                          fmt::join(algorithm_names(collective), ", ")));
}

std::string_view algorithm_name(std::uint8_t row) {
  return row < algorithms().size() ? algorithms()[row].name : "an algorithm unknown here";
}

std::vector<std::string_view> algorithm_names(Collective collective) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) names.push_back(algorithm.name);
  }
  return names;
}

}  // namespace kolo
