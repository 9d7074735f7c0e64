#include "train/optimizers/adamw.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace kolo::train {
namespace {

// The numbers that are the same for all elements of an update.
struct Factors {
  float kept;  // of a parameter
  float beta1, beta2;
  float size;        // learning_rate / (1 - beta1^t)
  float correction;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
};

Factors factors_of(const OptimizerSettings& settings, const UpdateStep& step) {
  const auto t = static_cast<double>(step.number);
  const double rate = step.learning_rate;
  return {static_cast<float>(1 - rate * double{settings.weight_decay}),
          settings.beta1,
          settings.beta2,
          static_cast<float>(rate / (1 - std::pow(double{settings.beta1}, t))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(double{settings.beta2}, t))),
          settings.epsilon};
}

void run(float* __restrict parameters, const float* __restrict gradients, float* __restrict mean,
         float* __restrict square, std::size_t count, const Factors& f) {
  for (std::size_t i = 0; i < count; ++i) {
    const float gradient = gradients[i];
    const float m = f.beta1 * mean[i] + (1 - f.beta1) * gradient;
    const float v = f.beta2 * square[i] + (1 - f.beta2) * gradient * gradient;
    mean[i] = m;
    square[i] = v;
    const float divisor = std::sqrt(v) * f.correction + f.epsilon;
    parameters[i] = f.kept * parameters[i] - f.size * m / divisor;
  }
}

bool is_fraction(float beta) { return beta >= 0 && beta < 1; }

}  // namespace

AdamW::AdamW(const OptimizerSettings& settings, std::int64_t offset, std::int64_t count)
    : Optimizer(offset, count), settings_(settings) {
  if (!is_fraction(settings.beta1) || !is_fraction(settings.beta2) || !(settings.epsilon > 0) ||
      !(settings.weight_decay >= 0)) {
    throw std::invalid_argument(
        fmt::format("AdamW: beta1 {} and beta2 {} must be from 0 to below 1, epsilon {} above 0, "
                    "weight decay {} at least 0",
                    settings.beta1, settings.beta2, settings.epsilon, settings.weight_decay));
  }
  mean_.assign(static_cast<std::size_t>(count), 0.0f);
  square_.assign(static_cast<std::size_t>(count), 0.0f);
}

void AdamW::update(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
                   const UpdateStep& step) {
  run(parameters.data(), gradients.data(), mean_.data() + first, square_.data() + first,
      parameters.size(), factors_of(settings_, step));
}

}  // namespace kolo::train
