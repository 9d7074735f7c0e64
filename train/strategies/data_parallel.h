// Data parallelism around one rank; see data_parallel.cpp.
#pragma once

#include "train/strategies/strategy.h"

namespace kolo::train {

std::unique_ptr<Strategy> make_data_parallel(const Arm& arm, StrategyContext context);

// Broadcasts rank 0's parameters. Collective.
void broadcast_parameters(Communicator& communicator, tensor::Parameters& parameters);

}  // namespace kolo::train
