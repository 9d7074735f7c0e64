// LARS: SGD with momentum, with a learning rate per layer for large batches.
//
// For a layer with weights w and gradients g:
//
//   local = trust * |w| / (|g| + weight_decay * |w|)         (1 if |w| or |g| is 0)
//   v = momentum * v + learning_rate * local * (g + weight_decay * w)
//   w -= v
//
// Biases and the parameters of normalisations have local = 1 and no weight decay. Source: You,
// Gitman, Ginsburg: "Large Batch Training of Convolutional Networks", 2017. The norms are sums in
// float64. Memory: 4 bytes per element.
#pragma once

#include "train/optimizers/optimizer.h"

namespace kolo::train {

class Lars final : public Optimizer {
 public:
  // Throws std::invalid_argument for a negative range, momentum or weight decay, a trust that is
  // not positive, or a layer that is partly in the range. apply() throws it for a part of a layer.
  Lars(const OptimizerSettings& settings, std::int64_t offset, std::int64_t count,
       std::span<const Layer> layers);

  std::vector<OptimizerState> state() override { return {{"momentum", velocity_}}; }

 private:
  void update(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
              const UpdateStep& step) override;

  OptimizerSettings settings_;
  std::vector<Layer> layers_;  // in the range, from its front to its back
  std::vector<float> velocity_;
};

}  // namespace kolo::train
