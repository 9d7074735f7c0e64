// How good the model is on data that it has not seen: exact, however the samples fall on the ranks.
#pragma once

#include <cstdint>
#include <functional>

#include "collectives/communicator.h"
#include "tensor/network.h"
#include "train/data/batch_plan.h"
#include "train/data/dataset.h"

namespace kolo::train {

struct Score {
  double loss = 0;      // mean over all samples
  double accuracy = 0;  // right ones / all
  std::int64_t samples = 0;
};

// Collective over all ranks of the communicator; those beyond plan.ranks() take part with nothing.
// Each sample is counted once, on whichever rank: numbers of right answers and samples are summed,
// never means of unequal shares. What has been counted is exchanged every few batches, so that no
// rank waits longer than these take. `network` and `data` are the worker's, null elsewhere.
Score evaluate(Communicator& communicator, tensor::Network* network, const Dataset* data,
               const BatchPlan& plan);

}  // namespace kolo::train
