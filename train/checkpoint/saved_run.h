// Checkpoints of a run over a communicator: rank 0 writes and reads the file.
#pragma once

#include <span>

#include "collectives/communicator.h"
#include "train/experiment/training_setup.h"
#include "train/strategies/strategy.h"

namespace kolo::train {

struct SavedRanks {
  Communicator& all;
  Communicator& exchanging;  // this rank and those with which it exchanges gradients
};

// Collective over all ranks. Writes a checkpoint of --save after `iteration` iterations, and
// deletes old ones. All parameters must be up to date at rank 0 (of a pipeline: at the stages of
// replica 0), whose buffers are saved, too; no exchange may be in flight. `optimizers`: those of
// this rank. Throws CheckpointError.
void save_checkpoint(const SavedRanks& ranks, TrainingSetup& setup, Strategy& strategy,
                     std::span<Optimizer* const> optimizers, std::int64_t iteration);

// Collective over all ranks: gives the optimizers and the strategy their state from the checkpoint
// of --resume. Throws DataError.
void restore_state(const SavedRanks& ranks, TrainingSetup& setup, Strategy& strategy,
                   std::span<Optimizer* const> optimizers);

}  // namespace kolo::train
