// All-reduce of gradients, or of parameters (local-sgd); every worker applies the optimizer. See
// all_reduce.cpp.
#pragma once

#include "train/strategies/strategy.h"

namespace kolo::train {

std::unique_ptr<Strategy> make_all_reduce(const Arm& arm, StrategyContext context);

}  // namespace kolo::train
