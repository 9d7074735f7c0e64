// Server plans (options.h) as requests to the algorithm of parameter servers.
#pragma once

#include "collectives/algorithms/parameter_server.h"
#include "collectives/options.h"

namespace kolo::inline v0 {

// The request of `rank`, as far as it follows from the plan.
ParameterServerRequest request_of(const ServerPlan& plan, int rank, int size);

}  // namespace kolo::inline v0
