// Checkpoints of a run over a communicator: rank 0 writes and reads the file.
#pragma once

#include <span>

#include "collectives/communicator.h"
#include "train/experiment/training_setup.h"

namespace kolo::train {

// Collective over all ranks. Writes a checkpoint of --save after `iteration` iterations, and
// deletes old ones. All parameters must be up to date at rank 0, whose buffers are saved, too; no
// exchange may be in flight. `optimizers`: those of this rank. Throws CheckpointError.
void save_checkpoint(Communicator& communicator, TrainingSetup& setup,
                     std::span<Optimizer* const> optimizers, std::int64_t iteration);

// Collective over all ranks: gives the optimizers their state from the checkpoint of --resume.
// Throws DataError.
void restore_optimizers(Communicator& communicator, TrainingSetup& setup,
                        std::span<Optimizer* const> optimizers);

}  // namespace kolo::train
