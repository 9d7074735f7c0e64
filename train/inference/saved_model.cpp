#include "train/inference/saved_model.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "train/checkpoint/checkpoint.h"
#include "train/models/model.h"

namespace kolo::train {
namespace {

// Used by torchvision's weights, in units of bytes.
constexpr Normalization kImageNet{{123.675F, 116.28F, 103.53F}, {58.395F, 57.12F, 57.375F}};

[[noreturn]] void refuse(const SafetensorsFile& file, const std::string& reason) {
  throw CheckpointError(fmt::format("{}: {}", file.path(), reason));
}

// The fact, or "" if the file does not have it.
std::string fact(const SafetensorsFile& file, const char* name) {
  const auto found = file.metadata().find(name);
  return found == file.metadata().end() ? "" : found->second;
}

// The given name, else the file's.
std::string chosen(const SafetensorsFile& file, const char* name, const std::string& given) {
  const std::string saved = fact(file, name);
  if (!given.empty() && !saved.empty() && given != saved)
    refuse(file, fmt::format("it is of the {} {}, not {}; remove --{}", name, saved, given, name));
  return given.empty() ? saved : given;
}

std::optional<ImageShape> image_of(const SafetensorsFile& file) {
  ImageShape image;
  const std::string text = fact(file, "image");
  if (text.empty()) return std::nullopt;
  if (std::sscanf(text.c_str(), "%dx%dx%d", &image.height, &image.width, &image.channels) != 3)
    refuse(file, fmt::format("its metadata have the image '{}'", text));
  return image;
}

void take_constants(const SafetensorsFile& file, const char* name, std::array<float, 3>& values) {
  const std::string text = fact(file, name);
  if (text.empty()) return;
  values = {1, 1, 1};
  if (std::sscanf(text.c_str(), "%f,%f,%f", values.data(), &values[1], &values[2]) < 1)
    refuse(file, fmt::format("its metadata have the {} '{}'", name, text));
}

// The rows of the last matrix of the model.
int classes_of(const SafetensorsFile& file, const std::string& model, const ModelSettings& some) {
  tensor::Parameters parameters;
  make_model(model, parameters, some);
  std::string last;
  for (const tensor::Parameter& parameter : parameters.list()) {
    if (parameter.shape.rank() == 2) last = parameter.name;
  }
  const StoredTensor* const weights = file.find(last);
  if (weights == nullptr || weights->shape.size() != 2 || weights->shape[0] < 2 ||
      weights->shape[0] > 1'000'000)
    refuse(file, fmt::format("it has no matrix '{}', which the model '{}' has; it is of another "
                             "model",
                             last, model));
  return static_cast<int>(weights->shape[0]);
}

SavedModel load(const InferenceOptions& options, const ImageShape& otherwise) {
  SafetensorsFile file(checkpoint_at(options.load));
  const std::string name = chosen(file, "model", options.model);
  if (name.empty()) refuse(file, "it does not say of which model it is; give --model");
  if (!options.stem.empty() && !has_stem(name))
    refuse(file, fmt::format("its model {} does not use --stem; remove it", name));
  const std::string stem = chosen(file, "stem", options.stem);
  const ImageShape image = image_of(file).value_or(otherwise);
  ModelSettings settings{{image.height, image.width, image.channels},
                         2,
                         stem.empty() ? Stem::imagenet : stem_from(stem)};
  settings.classes = classes_of(file, name, settings);
  tensor::Parameters parameters;
  auto model = make_model(name, parameters, settings);
  require_parameters(file, parameters, fmt::format("'{}' with {} classes", name, settings.classes));
  SavedModel saved{
      name, image, static_cast<int>(settings.classes), kImageNet,
      std::make_unique<tensor::Network>(std::move(model), std::move(parameters), settings.image,
                                        tensor::make_backend(options.backend, options.threads), 1)};
  take_constants(file, "mean", saved.normalization.mean);
  take_constants(file, "deviation", saved.normalization.deviation);
  read_parameters(reader_of(file), saved.network->parameters());
  return saved;
}

// Calls `use`. Its failures are those of --load.
template <typename Use>
auto named(const Use& use) {
  try {
    return use();
  } catch (const CheckpointError& error) {
    throw DataError(fmt::format("--load: {}", error.what()));
  }
}

}  // namespace

std::optional<ImageShape> saved_image(const InferenceOptions& options) {
  return named([&] { return image_of(SafetensorsFile(checkpoint_at(options.load))); });
}

SavedModel load_model(const InferenceOptions& options, const ImageShape& image) {
  return named([&] { return load(options, image); });
}

}  // namespace kolo::train
