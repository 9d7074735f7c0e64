// That all ranks were started with the same options: by hand, or by a launcher that gives each its
// own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/cli/arguments.h"
#include "transports/rendezvous.h"

namespace kolo::bench {

// What must be alike on all ranks, by the names of the options.
std::vector<std::pair<std::string, std::string>> shared_options(const Arguments& arguments);

// Collective. std::invalid_argument, on every rank but 0, which names an option that differs from
// rank 0's.
void require_same_arguments(int rank, const Arguments& arguments, Store& store);

}  // namespace kolo::bench
