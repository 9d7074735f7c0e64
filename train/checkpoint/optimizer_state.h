// Gathers the optimizer's state at rank 0, and distributes it. A stage of a pipeline has the state
// of its own parameters.
//
// Ranks that have a part (servers, shards, workers of local-sgd) send it by a reduction of the bits
// as whole numbers, where all others add zeros. So each number keeps its bits, also a negative
// zero.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "train/checkpoint/checkpoint.h"
#include "train/optimizers/optimizer.h"
#include "train/strategies/arm.h"

namespace kolo::train {

// The name of a state that each worker has: "momentum", "rank1.momentum", ...
std::string name_at(const std::string& name, int worker);

// Collective: sums the bits of floats, of which each belongs to one rank and is zero at the others.
// Adds the floats to rank 0's `state`.
void collect_bits(Communicator& communicator, std::span<std::int32_t> bits, const std::string& name,
                  ArenaState& state);

// Collective over all ranks. `optimizers`: those of this rank, maybe none. `elements`: the size of
// the arena. Without pipelines rank 0 gets the whole state, and all others get an empty one. In a
// pipeline each stage gets the state of its own parameters.
ArenaState collect_state(Communicator& communicator, const Arm& arm, int workers,
                         const OptimizerSettings& settings, std::span<Optimizer* const> optimizers,
                         std::size_t elements);

// Collective: gives all optimizers their part of rank 0's `state`. Throws CheckpointError if the
// state is not that of the optimizer.
void distribute_state(Communicator& communicator, const Arm& arm, int workers,
                      const OptimizerSettings& settings, std::span<Optimizer* const> optimizers,
                      std::size_t elements, const ArenaState& state);

// The names of an optimizer's states, such as "momentum".
std::vector<std::string> states_of(const OptimizerSettings& settings);

// Gives the optimizers of this rank their part of `state`.
void set_state(const OptimizerSettings& settings, std::span<Optimizer* const> optimizers,
               const ArenaState& state);

}  // namespace kolo::train
