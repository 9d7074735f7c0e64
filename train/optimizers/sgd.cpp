#include "train/optimizers/sgd.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kolo::train {
namespace {

// The arrays do not overlap and the loop has no branch, so the compiler vectorizes it.
template <bool kNesterov>
void run(float* __restrict parameters, const float* __restrict gradients,
         float* __restrict velocity, std::size_t count, const OptimizerSettings& settings,
         float learning_rate) {
  const float momentum = settings.momentum, decay = settings.weight_decay;
  for (std::size_t i = 0; i < count; ++i) {
    const float direction = gradients[i] + decay * parameters[i];
    const float moved = momentum * velocity[i] + direction;
    velocity[i] = moved;
    parameters[i] -= learning_rate * (kNesterov ? direction + momentum * moved : moved);
  }
}

}  // namespace

Sgd::Sgd(const OptimizerSettings& settings, std::int64_t offset, std::int64_t count)
    : Optimizer(offset, count), settings_(settings) {
  if (!(settings.momentum >= 0) || !(settings.weight_decay >= 0)) {
    throw std::invalid_argument(
        fmt::format("Sgd: momentum {} and weight decay {} must not be negative", settings.momentum,
                    settings.weight_decay));
  }
  if (settings.has_nesterov && settings.momentum == 0) {
    throw std::invalid_argument("Sgd: Nesterov's form needs a momentum above 0");
  }
  velocity_.assign(static_cast<std::size_t>(count), 0.0f);
}

void Sgd::update(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
                 const UpdateStep& step) {
  const auto loop = settings_.has_nesterov ? run<true> : run<false>;
  loop(parameters.data(), gradients.data(), velocity_.data() + first, parameters.size(), settings_,
       step.learning_rate);
}

}  // namespace kolo::train
