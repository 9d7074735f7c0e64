// Data-parallel reducer: a rank's side of the arm dataparallel (strategies/data_parallel.cpp).
//
// Before forward, rank 0 broadcasts its parameters, and sends each rank its share of the batch.
// Buckets are reduced to rank 0 during backward.
#pragma once

#include "train/data/batch_plan.h"
#include "train/data/loader.h"
#include "train/loop/bucket_reducer.h"

namespace kolo::train {

class DataParallelReducer final : public BucketReducer {
 public:
  DataParallelReducer(Communicator& communicator, Strategy& strategy,
                      tensor::Parameters& parameters, std::vector<Bucket> buckets,
                      bool helps_in_backward);

  void begin(const UpdateStep& step) override;
  ExchangeRecord finish(bool is_complete = true) override;

  // Collective, after begin(). `mine` becomes this rank's share of `whole`, which is rank 0's
  // global batch and empty on other ranks. `count`: its samples. `pixels`: floats of a sample.
  void scatter(const Minibatch& whole, std::int64_t count, std::size_t pixels, Minibatch& mine);

 private:
  void broadcast();
  // The time of a call that only waits for communication.
  void count_blocking(Clock::time_point start);

  bool is_current_ = true;  // all ranks have rank 0's parameters
};

}  // namespace kolo::train
