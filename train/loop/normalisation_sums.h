// Sums of batch normalisation over replicas of the model, or of one stage of it.
//
// In each normalisation, forward and backward, the replicas exchange sums over their samples. So
// all of them must make the same number of passes: one that has no samples left adds zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/communicator.h"
#include "tensor/network.h"
#include "train/data/loader.h"
#include "train/loop/straggler.h"
#include "train/loop/timeline.h"
#include "train/strategies/strategy.h"

namespace kolo::train {

struct NormalisationSettings {
  Communicator* replicas = nullptr;  // null: no exchange. Used for these sums only
  // Makes progress while a sum is in flight, so that messages between stages go on; may be null.
  Communicator* messages = nullptr;
  Timeline* timeline = nullptr;  // null: nothing is recorded
};

// One thread calls it. All references are borrowed.
class NormalisationSums {
 public:
  // Sets the network's exchange of sums. `clock` is paused during each exchange.
  NormalisationSums(tensor::Network& network, ComputeClock& clock,
                    const NormalisationSettings& settings);
  ~NormalisationSums();
  NormalisationSums(const NormalisationSums&) = delete;
  NormalisationSums& operator=(const NormalisationSums&) = delete;

  // Begins an iteration. Returns the number of passes of every replica: the micro-batches of the
  // largest share.
  std::size_t begin(const Minibatch& batch, std::int64_t micro_batch);
  // Adds zeros, for a pass in which this replica has no samples.
  void join_forward();
  void join_backward();

  // Of this iteration.
  double seconds() const { return seconds_; }
  Traffic moved() const;
  const Traffic& formula() const { return formula_; }

 private:
  void sum(std::span<double> values);
  void add_zeros(std::span<const std::size_t> lengths);

  tensor::Network& network_;
  ComputeClock& clock_;
  NormalisationSettings settings_;
  double seconds_ = 0;
  CommunicatorStatistics before_;
  Traffic formula_;
};

}  // namespace kolo::train
