// Collection of the optimizer's state from the ranks that have it, and its return.
//
// Ranks that hold a part (parameter servers) send it to rank 0 by a reduction of the bits as whole
// numbers, where all others add zeros. So each number keeps its bits, also a negative zero.
#pragma once

#include <span>
#include <vector>

#include "collectives/communicator.h"
#include "train/checkpoint/checkpoint.h"
#include "train/optimizers/optimizer.h"
#include "train/strategies/arm.h"

namespace kolo::train {

// Collective over all ranks. `optimizers`: those of this rank, maybe none; `elements`: of the
// arena. The result is rank 0's; others get an empty one.
ArenaState collect_state(Communicator& communicator, const Arm& arm, int workers,
                         const OptimizerSettings& settings, std::span<Optimizer* const> optimizers,
                         std::size_t elements);

// Collective: gives all optimizers their part of rank 0's `state`. Throws CheckpointError if the
// state is not that of the optimizer.
void distribute_state(Communicator& communicator, const Arm& arm, int workers,
                      const OptimizerSettings& settings, std::span<Optimizer* const> optimizers,
                      std::size_t elements, const ArenaState& state);

}  // namespace kolo::train
