#include "train/models/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "train/models/chain.h"
#include "train/models/cnn.h"
#include "train/models/mlp.h"
#include "train/models/resnet.h"
#include "train/models/small.h"

namespace kolo::train {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Chain> (*make)(tensor::Parameters& parameters, const ModelSettings& settings);
  bool has_stem = false;
  bool has_batch_norm = false;
};

constexpr Row kTable[] = {
    {"resnet18", make_resnet18, true, true},
    {"resnet34", make_resnet34, true, true},
    {"resnet50", make_resnet50, true, true},
    {"resnet101", make_resnet101, true, true},
    {"cnn", make_cnn},
    {"mlp", make_mlp},
    {"small", make_small, false, true},
};

}  // namespace

Stem stem_from(std::string_view name) {
  if (name == "imagenet") return Stem::imagenet;
  if (name == "cifar") return Stem::cifar;
  throw std::invalid_argument(
      fmt::format("unknown stem '{}'; expected one of imagenet, cifar", name));
}

namespace {

std::unique_ptr<Chain> make_chain(std::string_view name, tensor::Parameters& parameters,
                                  const ModelSettings& settings) {
  for (const Row& row : kTable) {
    if (row.name != name) continue;
    if (settings.classes < 2 || settings.image.rank() != 3) {
      throw std::invalid_argument(
          fmt::format("model '{}': at least 2 classes and an image of height x width x channels "
                      "are needed, not {} and {}",
                      name, settings.classes, settings.image.text()));
    }
    return row.make(parameters, settings);
  }
  throw std::invalid_argument(
      fmt::format("unknown model '{}'; expected one of {}", name, fmt::join(model_names(), ", ")));
}

}  // namespace

std::unique_ptr<tensor::Model> make_model(std::string_view name, tensor::Parameters& parameters,
                                          const ModelSettings& settings) {
  return make_chain(name, parameters, settings);
}

int parts_of_model(std::string_view name, const ModelSettings& settings) {
  tensor::Parameters none;
  ModelSettings empty = settings;
  empty.parts = {0, 0};
  return make_chain(name, none, empty)->all_parts();
}

std::unique_ptr<tensor::Network> make_network(std::string_view name, const ModelSettings& settings,
                                              std::unique_ptr<tensor::Backend> backend,
                                              std::uint64_t seed) {
  tensor::Parameters parameters;
  auto model = make_model(name, parameters, settings);
  return std::make_unique<tensor::Network>(std::move(model), std::move(parameters), settings.image,
                                           std::move(backend), seed);
}

bool has_stem(std::string_view name) {
  return std::ranges::any_of(kTable,
                             [&](const Row& row) { return row.name == name && row.has_stem; });
}

bool has_batch_norm(std::string_view name) {
  return std::ranges::any_of(
      kTable, [&](const Row& row) { return row.name == name && row.has_batch_norm; });
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Row& row : kTable) names.emplace_back(row.name);
  return names;
}

}  // namespace kolo::train
