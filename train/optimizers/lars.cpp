#include "train/optimizers/lars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace kolo::train {
namespace {

double norm_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * double{value};
  return std::sqrt(sum);
}

// True if `layer` and `range` share an element.
bool overlap(const tensor::Range& layer, const tensor::Range& range) {
  return layer.begin < range.end() && range.begin < layer.end();
}

bool contains(const tensor::Range& range, const tensor::Range& layer) {
  return range.begin <= layer.begin && layer.end() <= range.end();
}

}  // namespace

Lars::Lars(const OptimizerSettings& settings, std::int64_t offset, std::int64_t count,
           std::span<const Layer> layers)
    : Optimizer(offset, count), settings_(settings) {
  if (!(settings.momentum >= 0) || !(settings.weight_decay >= 0) || !(settings.trust > 0)) {
    throw std::invalid_argument(
        fmt::format("Lars: momentum {} and weight decay {} must not be negative, trust {} must be "
                    "above 0",
                    settings.momentum, settings.weight_decay, settings.trust));
  }
  for (const Layer& layer : layers) {
    if (overlap(layer.range, {offset, count})) layers_.push_back(layer);
  }
  std::ranges::sort(layers_, {}, [](const Layer& layer) { return layer.range.begin; });
  velocity_.assign(static_cast<std::size_t>(count), 0.0f);
}

void Lars::update(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
                  const UpdateStep& step) {
  const tensor::Range range{offset() + static_cast<std::int64_t>(first),
                            static_cast<std::int64_t>(parameters.size())};
  for (const Layer& layer : layers_) {
    if (!overlap(layer.range, range)) continue;
    if (!contains(range, layer.range)) {
      throw std::invalid_argument(
          fmt::format("Lars: elements {} to {} cut the layer of elements {} to {}", range.begin,
                      range.end(), layer.range.begin, layer.range.end()));
    }
    const auto at = static_cast<std::size_t>(layer.range.begin - range.begin);
    const auto count = static_cast<std::size_t>(layer.range.count);
    const std::span<float> w = parameters.subspan(at, count);
    const std::span<const float> g = gradients.subspan(at, count);
    const double size = norm_of(w), slope = norm_of(g);
    const float decay = layer.is_matrix ? settings_.weight_decay : 0.0f;
    double local = 1;
    if (layer.is_matrix && size > 0 && slope > 0)
      local = double{settings_.trust} * size / (slope + double{decay} * size);
    const auto rate = static_cast<float>(double{step.learning_rate} * local);
    float* const velocity = velocity_.data() + first + at;
    for (std::size_t i = 0; i < count; ++i) {
      velocity[i] = settings_.momentum * velocity[i] + rate * (g[i] + decay * w[i]);
      w[i] -= velocity[i];
    }
  }
}

}  // namespace kolo::train
