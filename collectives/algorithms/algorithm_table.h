// The algorithms in this build: one row each, by which callers name them and the communicator
// chooses.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collectives/algorithms/parameter_server.h"
#include "collectives/schedule.h"

namespace kolo {

// What any algorithm may ask: the servers matter to push and pull only.
struct PlanRequest {
  ScheduleRequest ranks;
  ParameterServerRequest servers;
};

struct Algorithm {
  Collective collective;
  std::string_view name;
  Schedule (*write)(const PlanRequest& request);
  bool takes_own_lengths = false;  // a rank needs to know the lengths of its own chunks only
  // Of reductions, for every size and root, as the checker proves: operands are combined in the
  // order of the ranks, x0 op x1 op x2 ..., bracketed in some way, which is what a function that
  // does not commute needs.
  bool is_in_order = false;
  // In order, and as ((x0 op x1) op x2) ...: all such algorithms give the same bits.
  bool is_rank_ordered = false;
  // Goes inside hosts first, then across: on one host there is a plainer algorithm for all it does.
  bool is_for_hosts = false;
};

// Rows of one collective stand together, best first. A row's index is what headers carry.
const std::vector<Algorithm>& algorithms();

// The row of `name`, or the first of the collective where `name` is empty. std::invalid_argument
// lists those there are.
std::uint8_t find_algorithm(Collective collective, std::string_view name);

// The same among those that are in the order of the ranks.
std::uint8_t find_ordered_algorithm(Collective collective, std::string_view name);

// The first of a collective that asks for no other rank's lengths; empty where there is none.
std::string_view own_lengths_algorithm(Collective collective);

// The name of a row, also of one that this build lacks.
std::string_view algorithm_name(std::uint8_t row);

// The names of a collective's rows, in the order of the table; public by communicator.h.
std::vector<std::string_view> algorithm_names(Collective collective);

}  // namespace kolo
