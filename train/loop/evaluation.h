// Evaluation of a model on test data; exact for every distribution of samples over ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "collectives/communicator.h"
#include "tensor/network.h"
#include "train/data/batch_plan.h"
#include "train/data/dataset.h"

namespace kolo::train {

struct Score {
  double loss = 0;      // mean over all samples
  double accuracy = 0;  // correct / all
  std::int64_t samples = 0;
};

// Collective over all ranks of the communicator; ranks beyond plan.ranks() contribute nothing. Each
// sample counts once: sums counts of correct answers and samples, never means of unequal shares.
// The counts are exchanged every few batches, so that no rank waits longer than these take.
// `network` and `data` are those of a worker, null on servers. `loader_threads` and
// `normalization`: LoaderSettings.
Score evaluate(Communicator& communicator, tensor::Network* network, const Dataset* data,
               const BatchPlan& plan, int loader_threads,
               const std::optional<Normalization>& normalization = {});

}  // namespace kolo::train
