// Stochastic gradient descent with momentum and weight decay.
//
// Same arithmetic as torch.optim.SGD, per element (dampening 0):
//
//   d = gradient + weight_decay * parameter
//   v = momentum * v + d                       (v starts at zero, so the first v is d)
//   parameter -= learning_rate * (has_nesterov ? d + momentum * v : v)
//
// Cost: one pass, 12 bytes read and 8 written per element, and 4 bytes of memory per element for v.
#pragma once

#include "train/optimizers/optimizer.h"

namespace kolo::train {

class Sgd final : public Optimizer {
 public:
  // Throws std::invalid_argument for a negative range, negative momentum or weight decay, or
  // Nesterov without momentum.
  Sgd(const OptimizerSettings& settings, std::int64_t offset, std::int64_t count);

  std::vector<OptimizerState> state() override { return {{"momentum", velocity_}}; }

 private:
  void update(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
              const UpdateStep& step) override;

  OptimizerSettings settings_;
  std::vector<float> velocity_;
};

}  // namespace kolo::train
