// All-reduce of gradients, or of parameters (local-sgd); every worker applies the optimizer. See
// all_reduce.cpp.
#pragma once

#include "train/strategies/strategy.h"

namespace kolo::train {

// The elements that this rank sends in an all-reduce of `count` elements by the algorithm.
std::size_t all_reduce_sent(const Communicator& communicator, std::string_view algorithm,
                            std::size_t count);

std::unique_ptr<Strategy> make_all_reduce(const Arm& arm, StrategyContext context);

}  // namespace kolo::train
