// A model with the weights of a file, ready to compute.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tensor/network.h"
#include "train/data/dataset.h"
#include "train/inference/options.h"

namespace kolo::train {

struct SavedModel {
  std::string name;
  ImageShape image;
  int classes = 0;
  Normalization normalization;  // of the training data; ImageNet's if the file does not say
  std::unique_ptr<tensor::Network> network;
};

// The images on which the model of --load was trained; nothing if the file does not say. Throws
// DataError.
std::optional<ImageShape> saved_image(const InferenceOptions& options);

// Opens the file of --load. `image` is used if the file does not say on which images the model was
// trained, as those of torchvision. Throws DataError.
SavedModel load_model(const InferenceOptions& options, const ImageShape& image);

}  // namespace kolo::train
