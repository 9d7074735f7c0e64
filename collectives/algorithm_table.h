// The algorithms in this build: one row each, by which callers name them and the communicator
// chooses.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collectives/algorithms/parameter_server.h"
#include "collectives/schedule.h"

namespace kolo {

// What any algorithm may ask: the servers matter to push_pull only.
struct PlanRequest {
  ScheduleRequest ranks;
  ParameterServerRequest servers;
};

struct Algorithm {
  Collective collective;
  std::string_view name;
  Schedule (*write)(const PlanRequest& request);
};

// Rows of one collective stand together, best first. A row's index is what headers carry.
const std::vector<Algorithm>& algorithms();

// The row of `name`, or the first of the collective where `name` is empty. std::invalid_argument
// lists those there are.
std::uint8_t find_algorithm(Collective collective, std::string_view name);

// The name of a row, also of one that this build lacks.
std::string_view algorithm_name(std::uint8_t row);

}  // namespace kolo
