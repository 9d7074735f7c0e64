// Check that all ranks were started with the same options, by hand or by a launcher.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/cli/arguments.h"
#include "transports/rendezvous.h"

namespace kolo::bench {

// Options that must be equal on all ranks, with their values.
std::vector<std::pair<std::string, std::string>> shared_options(const Arguments& arguments);

// Collective. Throws std::invalid_argument on every rank except 0 if an option differs from rank
// 0's, and names it.
void require_same_arguments(int rank, const Arguments& arguments, Store& store);

}  // namespace kolo::bench
