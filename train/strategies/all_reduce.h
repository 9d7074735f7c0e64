// Ring all-reduce of gradients; every worker applies the optimizer. See ring.cpp.
#pragma once

#include "train/strategies/strategy.h"

namespace kolo::train {

std::unique_ptr<Strategy> make_ring(const Arm& arm, StrategyContext context);

}  // namespace kolo::train
