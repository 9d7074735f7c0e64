// Table of the algorithms in this build. Callers name them, and the planner chooses among them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collectives/algorithms/parameter_server.h"
#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Inputs of any algorithm; `servers` is used by push and pull only.
struct PlanRequest {
  ScheduleRequest ranks;
  ParameterServerRequest servers;
};

struct Algorithm {
  Collective collective;
  std::string_view name;
  Schedule (*write)(const PlanRequest& request);
  bool takes_own_lengths = false;  // a rank needs to know only the lengths of its own chunks
  // Reductions: operands are combined in the order of the ranks, x0 op x1 op x2 ..., with any
  // brackets, as a non-commutative function needs. The checker proves it for every size and root.
  bool is_in_order = false;
  // In order, and as ((x0 op x1) op x2) ...: all such algorithms give the same bits.
  bool is_rank_ordered = false;
  // Works inside hosts first, then across hosts. On a single host a simpler algorithm does the
  // same.
  bool is_for_hosts = false;
};

// The rows of one collective stand together, best first. Call headers carry the index of a row.
const std::vector<Algorithm>& algorithms();

// The row of `name`, or the first row of the collective if `name` is empty. std::invalid_argument
// lists the names that exist.
std::uint8_t find_algorithm(Collective collective, std::string_view name);

// As find_algorithm, among the algorithms with is_in_order.
std::uint8_t find_ordered_algorithm(Collective collective, std::string_view name);

// The first algorithm of a collective with takes_own_lengths; empty if there is none.
std::string_view own_lengths_algorithm(Collective collective);

// The name of a row. Also accepts rows that this build does not have.
std::string_view algorithm_name(std::uint8_t row);

// The names of a collective's rows, in the order of the table; public by communicator.h.
std::vector<std::string_view> algorithm_names(Collective collective);

}  // namespace kolo::inline v0
