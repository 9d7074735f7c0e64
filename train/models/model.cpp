#include "train/models/model.h"

#include <fmt/format.h>

#include <stdexcept>

#include "train/models/cnn.h"
#include "train/models/resnet.h"
#include "train/models/small.h"

namespace kolo::train {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<tensor::Model> (*make)(tensor::Parameters& parameters,
                                         const ModelSettings& settings);
};

constexpr Row kTable[] = {
    {"resnet50", make_resnet50},
    {"small", make_small},
    {"cnn", make_cnn},
};

}  // namespace

Stem stem_from(std::string_view name) {
  if (name == "imagenet") return Stem::imagenet;
  if (name == "cifar") return Stem::cifar;
  throw std::invalid_argument(
      fmt::format("unknown stem '{}'; expected one of imagenet, cifar", name));
}

std::unique_ptr<tensor::Model> make_model(std::string_view name, tensor::Parameters& parameters,
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

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Row& row : kTable) names.emplace_back(row.name);
  return names;
}

}  // namespace kolo::train
