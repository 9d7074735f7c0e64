// Key reducer: a worker's side of a parameter server that serves keys in the order of arrival
// (collectives/key_server.h): asynchronous, with bounded staleness, or with backup workers.
//
// When a bucket is full, its keys are pushed, and the server answers each with fresh parameters. At
// the end of the iteration the worker waits for its own answers only, not for other workers.
#pragma once

#include "collectives/key_server.h"
#include "train/loop/gradient_reducer.h"

namespace kolo::train {

// The keys of all buckets, at `servers` dedicated servers, whose ranks follow the workers'. The
// first layers, which are the last buckets, have priority. Each server has the chunk of every
// bucket that chunk_begin() gives it. Range r of the plan is bucket buckets.size() - 1 - r.
KeyPlan plan_of_buckets(std::span<const Bucket> buckets, std::int64_t arena_elements, int workers,
                        int servers);

class KeyReducer final : public GradientReducer {
 public:
  // `communicator`: of the keys alone. `plan`: from plan_of_buckets.
  KeyReducer(Communicator& communicator, Strategy& strategy, tensor::Parameters& parameters,
             std::vector<Bucket> buckets, KeyPlan plan);

  // The number of this worker's samples in the iteration, which may be 0. Before the first hook.
  void set_samples(std::int64_t samples) { samples_ = static_cast<double>(samples); }

  void begin(const UpdateStep& step) override;
  void gradient_ready(tensor::ParameterId id) override;
  void all_ready() override;
  ExchangeRecord finish(bool is_complete = true) override;

  // The iteration to train next, from 0. Larger than the number of begun ones if the servers have
  // ended iterations without this worker (backup workers): leave these out by skip().
  std::int64_t next_iteration() const;
  void skip() { ++iteration_; }
  // Tells the servers that this worker has ended the epoch.
  void end_epoch() { client_.finish(); }

 private:
  void launch();
  std::pair<std::size_t, std::size_t> keys_of(std::size_t bucket) const;

  KeyPlan plan_;
  KeyClient client_;
  double samples_ = 0;
  std::size_t launched_ = 0;  // buckets
};

}  // namespace kolo::train
