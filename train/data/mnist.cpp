#include "train/data/mnist.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "train/data/data_file.h"
#include "train/data/idx_file.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kSide = 28;
constexpr std::int64_t kSampleBytes = kSide * kSide;
constexpr int kClasses = 10;

struct Samples {
  std::vector<std::uint8_t> pixels;  // row, column
  std::vector<std::uint8_t> labels;
};

class Mnist final : public Dataset {
 public:
  Mnist(std::string description, Samples samples)
      : description_(std::move(description)), samples_(std::move(samples)) {}

  std::string description() const override { return description_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.labels.size()); }
  int classes() const override { return kClasses; }
  ImageShape shape() const override { return {kSide, kSide, 1}; }
  // The constants of PyTorch's example, (0.1307, 0.3081) x 255: those of the 60,000 training
  // samples.
  Normalization normalization() const override { return {{33.3285f}, {78.5655f}}; }
  int get(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    check_sample_request(*this, index, pixels);
    std::memcpy(pixels.data(), samples_.pixels.data() + index * kSampleBytes, pixels.size());
    return samples_.labels[static_cast<std::size_t>(index)];
  }

 private:
  std::string description_;
  Samples samples_;
};

// Finds a file of the split, such as that of "images" and "idx3", in one of its spellings.
fs::path find_file(const fs::path& directory, Split split, std::string_view contents,
                   std::string_view form) {
  const std::string stem = fmt::format("{}-{}", split == Split::train ? "train" : "t10k", contents);
  const std::string official = fmt::format("{}-{}-ubyte", stem, form);
  const std::string dotted = fmt::format("{}.{}-ubyte", stem, form);
  for (const std::string& name : {official, dotted, official + ".gz", dotted + ".gz"}) {
    std::error_code error;
    if (fs::path path = directory / name; fs::exists(path, error)) return path;
  }
  throw DataError(
      fmt::format("data set 'mnist:{0}': there is neither {1} nor {1}.gz in '{0}'; kolo-train "
                  "fetch mnist '{0}' downloads it",
                  directory.string(), official));
}

void check_labels(const fs::path& path, const std::vector<std::uint8_t>& labels) {
  const auto wrong =
      std::ranges::find_if(labels, [](std::uint8_t label) { return label >= kClasses; });
  if (wrong == labels.end()) return;
  throw DataError(fmt::format("'{}': the label of sample {} is {}, but 0 to 9 were expected",
                              path.string(), wrong - labels.begin(), *wrong));
}

Samples read_files(const fs::path& images, const fs::path& labels, std::int64_t wanted) {
  Samples samples{read_idx(images, {kSide, kSide}), read_idx(labels, {})};
  check_labels(labels, samples.labels);
  const std::int64_t available = static_cast<std::int64_t>(samples.pixels.size()) / kSampleBytes;
  if (static_cast<std::int64_t>(samples.labels.size()) != available) {
    throw DataError(fmt::format("'{}' has {} labels, but '{}' has {} images", labels.string(),
                                samples.labels.size(), images.string(), available));
  }
  if (wanted > available) {
    throw DataError(fmt::format("'{}' has {} samples, but {} were requested", images.string(),
                                available, wanted));
  }
  if (wanted == 0) return samples;
  samples.labels.resize(static_cast<std::size_t>(wanted));
  samples.pixels.resize(static_cast<std::size_t>(wanted * kSampleBytes));
  return samples;
}

}  // namespace

std::unique_ptr<Dataset> open_mnist(std::string_view argument, Split split,
                                    const DatasetOptions& options) {
  const fs::path directory(argument);
  require_directory("mnist", directory);
  const fs::path images = find_file(directory, split, "images", "idx3");
  const fs::path labels = find_file(directory, split, "labels", "idx1");
  Samples samples =
      read_files(images, labels, split == Split::train ? options.train_size : options.test_size);
  return std::make_unique<Mnist>(fmt::format("mnist ({})", images.string()), std::move(samples));
}

}  // namespace kolo::train
