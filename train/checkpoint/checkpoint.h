// Checkpoint: a safetensors file with a model, its optimizer's state and its place in the training.
//
//   conv1.weight, bn1.running_mean, ...     parameters and buffers: torchvision's names and layout
//   bn1.num_batches_tracked                 I64, as torch has it; a file may lack it
//   optimizer.momentum.conv1.weight         the optimizer's state of a parameter, in its layout
//   optimizer.rank1.momentum.conv1.weight   that of another worker (local-sgd: each has its own)
//   optimizer.unsent.conv1.weight           gradients that top-k has not sent: gradient_state.h
//   metadata                                model, image, iteration, seed, ... (RunFacts)
//
// The order of the data needs no state: it depends only on the seed and the epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/arena.h"
#include "train/checkpoint/safetensors.h"
#include "train/data/dataset.h"
#include "train/options.h"

namespace kolo::train {

// Facts of a run, by the names of the metadata: "model", "optimizer", "seed", "iteration", ...
using RunFacts = std::map<std::string, std::string>;

// The facts that are known before training.
RunFacts facts_of(const Options& options, const Dataset& data);

// States of a run over the whole arena: of the optimizer, and unsent gradients. "momentum" or
// "rank1.momentum" to elements.
using ArenaState = std::map<std::string, std::vector<float>>;

// The tensors of a checkpoint: parameters, buffers and the optimizer's state. They refer to both
// arguments. Filling them overwrites the gradients.
std::vector<TensorSource> tensors_of(tensor::Parameters& parameters, const ArenaState& state);

// Writes a checkpoint atomically. Throws CheckpointError.
void write_checkpoint(const std::string& path, const RunFacts& facts, std::int64_t iteration,
                      std::span<const TensorSource> tensors);

// Checks that a file has exactly the parameters and buffers of a model, by name, shape and a dtype
// that can be read. The state of an optimizer and num_batches_tracked may be there. `model` is for
// the message. Throws CheckpointError.
void require_parameters(const SafetensorsFile& file, const tensor::Parameters& parameters,
                        const std::string& model);

// Reads the tensor of a name. Returns false if there is none. Throws CheckpointError.
using TensorReader = std::function<bool(const std::string& name, std::span<float> elements)>;
TensorReader reader_of(SafetensorsFile& file);

// Reads parameters and buffers. Only a counter may be absent; call require_parameters first.
void read_parameters(const TensorReader& read, tensor::Parameters& parameters);

// The states in a file, such as "momentum". Throws CheckpointError if one lacks a parameter, or has
// it in another shape.
std::vector<std::string> states_in(const SafetensorsFile& file,
                                   const tensor::Parameters& parameters);

// Reads these states. Leaves the parameters as they were. Throws CheckpointError if a parameter
// has none.
ArenaState read_state(const TensorReader& read, std::span<const std::string> names,
                      tensor::Parameters& parameters);

// Checks that a run with these facts can go on from a checkpoint. The number of ranks, the strategy
// and the learning rate may differ. Throws CheckpointError with the first difference and its flag.
void require_same_run(const SafetensorsFile& file, const RunFacts& facts);

// The iterations that are done. Throws CheckpointError.
std::int64_t iteration_of(const SafetensorsFile& file);

// FOLDER/iteration-00000123.safetensors
std::string checkpoint_name(const std::string& folder, std::int64_t iteration);
// Iteration to file.
std::map<std::int64_t, std::string> checkpoints_in(const std::string& folder);
// The file itself, or the last checkpoint of a folder. Throws CheckpointError if there is none.
std::string checkpoint_at(const std::string& place);
// Deletes all but the last `kept` checkpoints.
void prune_checkpoints(const std::string& folder, int kept);

}  // namespace kolo::train
