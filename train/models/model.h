// Factory of models by name. To add one, write its two files and one row of the table in model.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/arena.h"
#include "tensor/network.h"
#include "tensor/shape.h"

namespace kolo::train {

// First layers of a residual network.
enum class Stem {
  imagenet,  // 7x7 convolution of stride 2, then 3x3 max-pooling of stride 2: a quarter of the
             // size
  cifar      // 3x3 convolution of stride 1: for images of 32x32
};
// "imagenet" or "cifar"; throws std::invalid_argument, listing these, for anything else.
Stem stem_from(std::string_view name);

// Consecutive parts [begin, end) of a model; see chain.h.
struct PartRange {
  int begin = 0;
  int end = std::numeric_limits<int>::max();
  bool has(int part) const { return part >= begin && part < end; }
  bool operator==(const PartRange&) const = default;
};

struct ModelSettings {
  tensor::Shape image{32, 32, 3};  // height, width, channels
  std::int64_t classes = 10;
  Stem stem = Stem::imagenet;  // other models ignore it
  PartRange parts = {};        // the parts that are made
};

// Makes the model and registers its parameters, in torchvision's order if torchvision has the
// model. Pass both to tensor::Network. Throws std::invalid_argument for an unknown name (the
// message lists the known ones), or an unsupported image or number of classes.
std::unique_ptr<tensor::Model> make_model(std::string_view name, tensor::Parameters& parameters,
                                          const ModelSettings& settings);

// The number of parts of a model. A chain of all parts is the model.
int parts_of_model(std::string_view name, const ModelSettings& settings);

// Makes a model as a network, which owns its parameters and gradients. `seed`: of the initial
// values.
std::unique_ptr<tensor::Network> make_network(std::string_view name, const ModelSettings& settings,
                                              std::unique_ptr<tensor::Backend> backend,
                                              std::uint64_t seed);

// True for models that use ModelSettings::stem.
bool has_stem(std::string_view name);

// True for models with batch normalisation.
bool has_batch_norm(std::string_view name);

// The names that make_model accepts.
std::vector<std::string> model_names();

}  // namespace kolo::train
