// Initial state of PyTorch's arms: files in a temporary folder, which torch_arm.py reads.
//
//   seed-1/setup.json            model, batch, optimizer, iterations, ...
//   seed-1/weights.safetensors   the initial weights
//   seed-1/data.safetensors      all F32: normalised samples (N x C x H x W), labels, the order of
//                                samples in each epoch, the learning rate of each iteration
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/options.h"

namespace kolo::train {

// Checks that the arms of PyTorch can run: the interpreter has torch, and each rank has a sample in
// each iteration. Throws UsageError or DataError.
void check_torch_arms(const Options& options, std::int64_t train_samples);

// The temporary folder. The destructor removes it.
class InitialState {
 public:
  // Writes the files of all seeds. Throws DataError, CheckpointError if the disk is full, and Error
  // kSystem.
  explicit InitialState(const Options& options);
  ~InitialState();
  InitialState(const InitialState&) = delete;
  InitialState& operator=(const InitialState&) = delete;

  // The command that starts a rank of an arm. A descriptor below 0: the rank has none.
  std::vector<std::string> command(const Options& options, const Arm& arm, std::uint64_t seed,
                                   int events_fd, int turns_fd) const;

 private:
  std::string folder_;
};

}  // namespace kolo::train
