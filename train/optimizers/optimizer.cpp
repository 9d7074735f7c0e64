#include "train/optimizers/optimizer.h"

#include <fmt/format.h>

#include <stdexcept>

#include "train/optimizers/adamw.h"
#include "train/optimizers/lars.h"
#include "train/optimizers/sgd.h"

namespace kolo::train {

OptimizerKind optimizer_from(std::string_view name) {
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::adamw, OptimizerKind::lars}) {
    if (name_of(kind) == name) return kind;
  }
  throw std::invalid_argument(
      fmt::format("unknown optimizer '{}'; expected one of sgd, adamw, lars", name));
}

std::string_view name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::lars:
      return "lars";
  }
  throw std::invalid_argument("name_of: no such optimizer");
}

std::vector<Layer> layers_of(const tensor::Parameters& parameters) {
  std::vector<Layer> layers;
  for (const tensor::ParameterId id : parameters.arena_order()) {
    const tensor::Parameter& parameter = parameters.list()[static_cast<std::size_t>(id)];
    layers.push_back({parameter.range, parameter.shape.rank() > 1});
  }
  return layers;
}

Optimizer::Optimizer(std::int64_t offset, std::int64_t count) : offset_(offset), count_(count) {
  if (offset < 0 || count < 0) {
    throw std::invalid_argument(
        fmt::format("optimizer: a range of {} elements from {}", count, offset));
  }
}

void Optimizer::apply(std::int64_t offset, std::span<float> parameters,
                      std::span<const float> gradients, const UpdateStep& step) {
  const auto count = static_cast<std::int64_t>(parameters.size());
  if (parameters.size() != gradients.size() || offset < offset_ ||
      offset + count > offset_ + count_) {
    throw std::invalid_argument(
        fmt::format("optimizer: {} parameters and {} gradients from element {}, but it holds {} "
                    "from {}",
                    parameters.size(), gradients.size(), offset, count_, offset_));
  }
  update(static_cast<std::size_t>(offset - offset_), parameters, gradients, step);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, std::int64_t offset,
                                          std::int64_t count, std::span<const Layer> layers) {
  switch (settings.kind) {
    case OptimizerKind::sgd:
      return std::make_unique<Sgd>(settings, offset, count);
    case OptimizerKind::adamw:
      return std::make_unique<AdamW>(settings, offset, count);
    case OptimizerKind::lars:
      return std::make_unique<Lars>(settings, offset, count, layers);
  }
  throw std::invalid_argument("make_optimizer: no such optimizer");
}

bool needs_whole_layers(OptimizerKind kind) { return kind == OptimizerKind::lars; }

}  // namespace kolo::train
