// Small tables from all ranks: what each knows becomes known to all.
//
// There is no gather among the collectives that this needs; a sum over slots that only their owner
// fills is one, exactly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/communicator.h"

namespace kolo::train {

// Collective. Element r of the result is what rank r gave.
std::vector<std::int64_t> gather(Communicator& communicator, std::int64_t mine);

// Collective. `mine` has the same length on every rank; row r of the result is what rank r gave.
std::vector<std::vector<double>> gather_rows(Communicator& communicator,
                                             std::span<const double> mine);

// The same for 64-bit integers.
std::vector<std::vector<std::int64_t>> gather_rows(Communicator& communicator,
                                                   std::span<const std::int64_t> mine);

}  // namespace kolo::train
