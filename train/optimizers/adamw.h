// AdamW: Adam with decoupled weight decay.
//
// Same arithmetic as torch.optim.AdamW, per element, in update t = 1, 2, ...:
//
//   parameter *= 1 - learning_rate * weight_decay
//   m = beta1 * m + (1 - beta1) * gradient
//   v = beta2 * v + (1 - beta2) * gradient^2
//   parameter -= learning_rate / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon)
//
// Loshchilov, Hutter: "Decoupled Weight Decay Regularization", ICLR 2019. Memory: 8 bytes per
// element.
#pragma once

#include "train/optimizers/optimizer.h"

namespace kolo::train {

class AdamW final : public Optimizer {
 public:
  // Throws std::invalid_argument for a negative range or weight decay, a beta outside of [0, 1), or
  // an epsilon that is not positive.
  AdamW(const OptimizerSettings& settings, std::int64_t offset, std::int64_t count);

  std::vector<OptimizerState> state() override { return {{"mean", mean_}, {"square", square_}}; }

 private:
  void update(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
              const UpdateStep& step) override;

  OptimizerSettings settings_;
  std::vector<float> mean_;    // m
  std::vector<float> square_;  // v
};

}  // namespace kolo::train
