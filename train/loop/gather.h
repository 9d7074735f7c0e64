// All-gather of small rows of numbers.
//
// Implemented as an all-reduce (sum) over slots, each filled by its owner only, which is exact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/communicator.h"

namespace kolo::train {

// Collective. Element r of the result is rank r's value.
std::vector<std::int64_t> gather(Communicator& communicator, std::int64_t mine);

// Collective. `mine` has the same length on every rank. Row r of the result is rank r's row.
std::vector<std::vector<double>> gather_rows(Communicator& communicator,
                                             std::span<const double> mine);

// The same for 64-bit integers.
std::vector<std::vector<std::int64_t>> gather_rows(Communicator& communicator,
                                                   std::span<const std::int64_t> mine);

}  // namespace kolo::train
