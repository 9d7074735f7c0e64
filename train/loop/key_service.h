// Key service: a dedicated server's part of a run whose servers apply gradients as they arrive.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/key_server.h"
#include "train/experiment/training_setup.h"
#include "train/loop/buckets.h"
#include "train/loop/metrics.h"
#include "train/optimizers/optimizer.h"
#include "train/strategies/strategy.h"

namespace kolo::train {

class KeyService {
 public:
  // All references are borrowed. `plan`: of the buckets.
  KeyService(Communicator& communicator, TrainingSetup& setup, const Strategy& strategy,
             const std::vector<Bucket>& buckets, const KeyPlan& plan);

  // Serves the iterations [first, end) of an epoch. A server has no iterations of its own: the
  // record is the mean of the epoch.
  IterationRecord serve_epoch(std::int64_t first, std::int64_t end);

  // The optimizers of this server's keys.
  std::vector<Optimizer*> optimizers();
  // Call before the first epoch of a resumed run, in which `iterations` are done.
  void resume_from(std::int64_t iterations);

  // Sums over all epochs.
  const KeyServerStatistics& statistics() const { return served_; }

 private:
  void update(const KeyUpdate& update);
  bool applies_each_worker() const;
  void add(const KeyServerStatistics& served);
  void count_bytes(const CommunicatorStatistics& before, const KeyServerStatistics& served,
                   double iterations, IterationRecord& mean) const;

  Communicator& communicator_;
  TrainingSetup& setup_;
  const Strategy& strategy_;
  const std::vector<Bucket>& buckets_;
  const KeyPlan& plan_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  // one per key; null: of another server
  std::vector<std::int64_t> updates_;                   // of each key so far
  KeyServerStatistics served_;
};

// Gives all workers the servers' parameters. Collective. A server's share of a bucket is its chunk.
void pull_parameters(Communicator& communicator, TrainingSetup& setup,
                     const std::vector<Bucket>& buckets);

}  // namespace kolo::train
