#include "train/optimizers/sgd.h"

#include <fmt/format.h>

#include <stdexcept>

namespace kolo::train {
namespace {

// The arrays do not overlap and the loop has no branch, so the compiler vectorizes it.
template <bool kNesterov>
void update(float* __restrict parameters, const float* __restrict gradients,
            float* __restrict velocity, std::size_t count, SgdSettings settings,
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

Sgd::Sgd(const SgdSettings& settings, std::int64_t offset, std::int64_t count)
    : settings_(settings), offset_(offset) {
  if (offset < 0 || count < 0) {
    throw std::invalid_argument(fmt::format("Sgd: a range of {} elements from {}", count, offset));
  }
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

void Sgd::apply(std::int64_t offset, std::span<float> parameters, std::span<const float> gradients,
                float learning_rate) {
  const auto count = static_cast<std::int64_t>(parameters.size());
  if (parameters.size() != gradients.size() || offset < offset_ ||
      offset + count > offset_ + this->count()) {
    throw std::invalid_argument(fmt::format(
        "Sgd: {} parameters and {} gradients from element {}, but this optimizer holds {} from {}",
        parameters.size(), gradients.size(), offset, this->count(), offset_));
  }
  float* velocity = velocity_.data() + (offset - offset_);
  const auto run = settings_.has_nesterov ? update<true> : update<false>;
  run(parameters.data(), gradients.data(), velocity, parameters.size(), settings_, learning_rate);
}

}  // namespace kolo::train
