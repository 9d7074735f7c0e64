// Bucket reducer: exchanges buckets in the order in which they fill.
//
// When all gradients of a bucket are final, its exchange starts, and runs while earlier layers
// compute. After backward, the reducer waits for the buckets in order. It updates the parameters of
// each bucket when its exchange is done, while later buckets are still in transfer.
//
// With Sync::naive and Sync::flat no exchange starts before the end of backward, and naive waits
// for each bucket before it starts the next.
#pragma once

#include "train/loop/gradient_reducer.h"

namespace kolo::train {

class BucketReducer : public GradientReducer {
 public:
  // `helps_in_backward`: make progress at every gradient; needed unless a progress thread does it.
  BucketReducer(Communicator& communicator, Strategy& strategy, tensor::Parameters& parameters,
                std::vector<Bucket> buckets, bool helps_in_backward, Sync sync = Sync::bucketed);

  void begin(const UpdateStep& step) override;
  void gradient_ready(tensor::ParameterId id) override;
  void all_ready() override;
  ExchangeRecord finish(bool is_complete = true) override;

 protected:
  // Waits for all buckets and applies them.
  void wait_and_apply();

 private:
  void launch();

  bool helps_in_backward_;
  Sync sync_;
  std::vector<Work> works_;  // one per started bucket
};

}  // namespace kolo::train
