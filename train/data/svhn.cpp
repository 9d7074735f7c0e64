#include "train/data/svhn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "train/data/data_file.h"
#include "train/data/mat_file.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kSide = 32;
constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kSampleBytes = kSide * kSide * kChannels;

struct Samples {
  std::vector<std::uint8_t> pixels;  // row, column, channel
  std::vector<std::uint8_t> labels;
};

class Svhn final : public Dataset {
 public:
  Svhn(std::string description, Samples samples)
      : description_(std::move(description)), samples_(std::move(samples)) {}

  std::string description() const override { return description_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.labels.size()); }
  int classes() const override { return 10; }
  ImageShape shape() const override { return {kSide, kSide, kChannels}; }
  // The usual constants for this data set (0.4377, 0.4438, 0.4728; 0.1980, 0.2010, 0.1970 of the
  // 73,257 training samples) x 255.
  Normalization normalization() const override {
    return {{111.61f, 113.17f, 120.56f}, {50.49f, 51.26f, 50.24f}};
  }
  int get(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    check_sample_request(*this, index, pixels);
    std::memcpy(pixels.data(), samples_.pixels.data() + index * kSampleBytes, pixels.size());
    return samples_.labels[static_cast<std::size_t>(index)];
  }

 private:
  std::string description_;
  Samples samples_;
};

// Finds the file with the official name, or else the only file whose name contains it.
fs::path find_file(const fs::path& directory, Split split) {
  require_directory("svhn", directory);
  std::error_code error;
  const std::string stem = fmt::format("{}_32x32", name_of(split));
  if (fs::path official = directory / (stem + ".mat"); fs::exists(official, error)) return official;
  std::vector<std::string> variants;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.find(stem) != std::string::npos && entry.path().extension() == ".mat")
      variants.push_back(name);
  }
  if (variants.empty()) {
    throw DataError(fmt::format(
        "data set 'svhn:{0}': there is neither {1}.mat nor *{1}*.mat in '{0}'; kolo-train "
        "fetch svhn '{0}' downloads it",
        directory.string(), stem));
  }
  if (variants.size() > 1) {
    std::sort(variants.begin(), variants.end());
    throw DataError(
        fmt::format("data set 'svhn:{0}': there is no {1}.mat, but several candidates: {2}; "
                    "keep one of them in '{0}'",
                    directory.string(), stem, fmt::join(variants, ", ")));
  }
  return directory / variants.front();
}

std::vector<std::uint8_t> read_labels(const fs::path& path, std::int64_t samples) {
  const MatArray y = read_mat_variable(path, "y");
  const bool is_double = y.element == "double";
  const std::int64_t elements = static_cast<std::int64_t>(y.bytes.size()) /
                                (is_double ? static_cast<std::int64_t>(sizeof(double)) : 1);
  if ((y.element != "uint8" && !is_double) || elements != samples) {
    throw DataError(
        fmt::format("variable 'y' of '{}' is {}, but {} labels of uint8 or double were expected, "
                    "as X has {} samples",
                    path.string(), y.text(), samples, samples));
  }
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    double label = y.bytes[is_double ? 0 : i];
    if (is_double) std::memcpy(&label, y.bytes.data() + i * sizeof(double), sizeof(double));
    if (!(label >= 1 && label <= 10) || label != static_cast<double>(static_cast<int>(label))) {
      throw DataError(fmt::format(
          "'{}': the label of sample {} is {}, but 1 to 10 were expected (10 means the digit 0)",
          path.string(), i, label));
    }
    labels[i] = static_cast<std::uint8_t>(static_cast<int>(label) % 10);
  }
  return labels;
}

// X[row + 32 (column + 32 (channel + 3 sample))] -> sample, row, column, channel.
std::vector<std::uint8_t> transposed(const std::vector<std::uint8_t>& x, std::int64_t samples) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(samples * kSampleBytes));
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::uint8_t* from = x.data() + sample * kSampleBytes;
    std::uint8_t* to = pixels.data() + sample * kSampleBytes;
    for (std::int64_t row = 0; row < kSide; ++row) {
      for (std::int64_t column = 0; column < kSide; ++column) {
        for (std::int64_t channel = 0; channel < kChannels; ++channel) {
          *to++ = from[row + kSide * (column + kSide * channel)];
        }
      }
    }
  }
  return pixels;
}

Samples read_file(const fs::path& path, std::int64_t wanted) {
  check_mat_framing(path);
  const MatArray x = read_mat_variable(path, "X");
  const bool is_right_shape = x.dimensions.size() == 4 && x.dimensions[0] == kSide &&
                              x.dimensions[1] == kSide && x.dimensions[2] == kChannels &&
                              x.dimensions[3] > 0;
  if (!is_right_shape || x.element != "uint8") {
    throw DataError(fmt::format("variable 'X' of '{}' is {}, but 32x32x3xN uint8 was expected",
                                path.string(), x.text()));
  }
  const std::int64_t available = x.dimensions[3];
  if (wanted > available) {
    throw DataError(fmt::format("'{}' has {} samples, but {} were requested", path.string(),
                                available, wanted));
  }
  Samples samples{{}, read_labels(path, available)};
  const std::int64_t used = wanted == 0 ? available : wanted;
  samples.labels.resize(static_cast<std::size_t>(used));
  samples.pixels = transposed(x.bytes, used);
  return samples;
}

}  // namespace

std::unique_ptr<Dataset> open_svhn(std::string_view argument, Split split,
                                   const DatasetOptions& options) {
  const fs::path path = find_file(fs::path(argument), split);
  Samples samples = read_file(path, split == Split::train ? options.train_size : options.test_size);
  return std::make_unique<Svhn>(fmt::format("svhn ({})", path.string()), std::move(samples));
}

}  // namespace kolo::train
