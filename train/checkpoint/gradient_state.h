// State of the gradient options between iterations: the loss scale of float16, and the gradients
// that top-k has not sent yet.
//
//   optimizer.unsent.conv1.weight         gradients of worker 0, in the parameter's layout
//   optimizer.rank1.unsent.conv1.weight   of worker 1
//   metadata                              loss_scale, updates_at_loss_scale, updates_skipped,
//                                         unsent_workers
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "train/checkpoint/checkpoint.h"
#include "train/strategies/gradient_update.h"

namespace kolo::train {

// The name of a worker's unsent gradients among the states of a file.
std::string unsent_name(int worker);

// Collective over the workers that exchange gradients. Adds the unsent gradients of each worker to
// rank 0's `state`. `mine`: this worker's, laid out as the arena.
void collect_unsent(Communicator& workers, std::span<const float> mine, ArenaState& state);

// Collective over the workers that exchange gradients. Gives each worker its unsent gradients from
// rank 0's `state`. If the number of workers has changed, worker 0 gets the sum of all, and the
// others get zeros.
void distribute_unsent(Communicator& workers, const ArenaState& state, std::span<float> mine);

struct SavedLossScale {
  double scale = 0;  // 0: none was saved
  std::int64_t since_change = 0;
  std::int64_t skipped = 0;
};

// The loss scale in the metadata of a checkpoint. Throws CheckpointError if it is invalid.
SavedLossScale loss_scale_in(const SafetensorsFile& file);

// Checks that the file has the unsent gradients of all workers that saved them. `states`: those in
// the file. Throws CheckpointError.
void require_all_unsent(const SafetensorsFile& file, std::span<const std::string> states);

// Adds the state of the loss scale to the facts of a checkpoint.
void add_loss_scale(RunFacts& facts, const GradientUpdate& update);
// Adds the number of workers whose unsent gradients are in it.
void add_unsent_workers(RunFacts& facts, int workers);

// Collective over all ranks. `file`: the checkpoint; rank 0 has it, all others have null.
void restore_loss_scale(Communicator& communicator, const SafetensorsFile* file,
                        GradientUpdate& update);

}  // namespace kolo::train
