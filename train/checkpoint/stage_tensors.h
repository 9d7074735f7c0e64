// Tensors of a pipeline's stages. Rank 0 writes and reads the file, one tensor at a time. To save,
// it receives the tensors of other stages; to load, it sends them. So no rank needs memory for the
// whole model.
#pragma once

#include <functional>
#include <vector>

#include "collectives/communicator.h"
#include "train/checkpoint/checkpoint.h"
#include "train/pipeline/place.h"

namespace kolo::train {

// Collective over the stages of replica 0. `mine`: the tensors of this rank. Rank 0 gets those of
// all stages, and must fill each of them once, in this order. The others send theirs meanwhile, and
// get none.
std::vector<TensorSource> collect_tensors(Communicator& communicator, const PipelinePlace& place,
                                          std::vector<TensorSource> mine);

// Collective over all ranks: each calls `use` with a function that reads the file. `file`: rank 0
// has it, all others have null. Throws CheckpointError.
void read_for_all(Communicator& communicator, SafetensorsFile* file,
                  const std::function<void(const TensorReader&)>& use);

}  // namespace kolo::train
