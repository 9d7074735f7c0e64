// Sharded optimizer; see sharded.cpp.
#pragma once

#include "train/strategies/strategy.h"

namespace kolo::train {

std::unique_ptr<Strategy> make_sharded(const Arm& arm, StrategyContext context);

}  // namespace kolo::train
