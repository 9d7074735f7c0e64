#include "train/optimizers/learning_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace kolo::train {

Decay decay_from(std::string_view name) {
  for (const Decay decay : {Decay::constant, Decay::step, Decay::cosine, Decay::polynomial}) {
    if (name_of(decay) == name) return decay;
  }
  throw std::invalid_argument(fmt::format(
      "unknown decay '{}' of the learning rate; expected one of constant, step, cosine, "
      "polynomial",
      name));
}

std::string_view name_of(Decay decay) {
  switch (decay) {
    case Decay::constant:
      return "constant";
    case Decay::step:
      return "step";
    case Decay::cosine:
      return "cosine";
    case Decay::polynomial:
      return "polynomial";
  }
  throw std::invalid_argument("name_of: no such decay");
}

LearningRate::LearningRate(const LearningRateSettings& settings) : settings_(settings) {
  const bool is_sound = settings.base >= 0 && settings.reference_batch > 0 &&
                        settings.global_batch > 0 && settings.warmup_iterations >= 0 &&
                        settings.total_iterations > 0 &&
                        (settings.decay != Decay::step ||
                         (settings.step_iterations > 0 && settings.step_factor > 0)) &&
                        settings.power > 0;
  if (!is_sound) {
    throw std::invalid_argument(
        fmt::format("LearningRate: base {}, reference batch {}, global batch {}, {} of {} "
                    "iterations of warm-up, {} decay every {} by {}",
                    settings.base, settings.reference_batch, settings.global_batch,
                    settings.warmup_iterations, settings.total_iterations, name_of(settings.decay),
                    settings.step_iterations, settings.step_factor));
  }
}

float LearningRate::peak() const {
  return settings_.base * static_cast<float>(settings_.global_batch) /
         static_cast<float>(settings_.reference_batch);
}

float LearningRate::at(std::int64_t iteration) const {
  const std::int64_t now = std::clamp<std::int64_t>(iteration, 0, settings_.total_iterations - 1);
  const std::int64_t warmup = settings_.warmup_iterations;
  if (now < warmup) {
    return peak() * static_cast<float>(now + 1) / static_cast<float>(warmup);
  }
  const std::int64_t length = std::max<std::int64_t>(1, settings_.total_iterations - warmup);
  const double done = static_cast<double>(now - warmup) / static_cast<double>(length);
  switch (settings_.decay) {
    case Decay::constant:
      return peak();
    case Decay::step:
      return peak() *
             static_cast<float>(std::pow(settings_.step_factor, now / settings_.step_iterations));
    case Decay::cosine:
      return peak() * static_cast<float>(0.5 * (1 + std::cos(std::numbers::pi * done)));
    case Decay::polynomial:
      return peak() * static_cast<float>(std::pow(1 - done, settings_.power));
  }
  return peak();
}

}  // namespace kolo::train
