// Synchronous parameter server; see parameter_server.cpp.
#pragma once

#include "train/strategies/strategy.h"

namespace kolo::train {

std::unique_ptr<Strategy> make_parameter_server(const Arm& arm, StrategyContext context);

}  // namespace kolo::train
