// Local reducer: applies each worker's own gradients, and averages the parameters of all workers
// every few iterations (the arm local-sgd:H).
//
// Nothing is exchanged in the other iterations. The average starts bucket by bucket after backward,
// as soon as a bucket is updated.
#pragma once

#include "train/loop/gradient_reducer.h"

namespace kolo::train {

class LocalReducer final : public GradientReducer {
 public:
  // `steps`: iterations between two averages.
  LocalReducer(Communicator& communicator, Strategy& strategy, tensor::Parameters& parameters,
               std::vector<Bucket> buckets, int steps);

  void begin(const UpdateStep& step) override;
  void gradient_ready(tensor::ParameterId id) override { count_ready(id); }
  void all_ready() override { ready_ = static_cast<int>(position_.size()); }
  // With `is_complete` it averages, too.
  ExchangeRecord finish(bool is_complete = true) override;

 private:
  int steps_;
};

}  // namespace kolo::train
