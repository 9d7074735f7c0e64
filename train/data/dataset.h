// Interface of data sets: samples of one shape, accessed by index.
//
// A specification names a data set: "digits" or "synthetic" (made by the program, always
// available), or "svhn:DIR", "mnist:DIR", "cifar10:DIR" or "imagefolder:DIR" (files). To add one,
// see train/DESIGN.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::train {

// Error: data is missing, damaged or of the wrong kind. The message names the file or flag, and
// what was expected.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Split { train, test };
// "train" or "test".
std::string_view name_of(Split split);

// Height, width and channels of every sample, stored in this order (a sample is one row-major
// block of bytes).
struct ImageShape {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::int64_t elements() const { return std::int64_t{height} * width * channels; }
  bool operator==(const ImageShape&) const = default;
};

// Per-channel constants, in units of the bytes (0..255): a pixel x becomes (x - mean) / deviation.
struct Normalization {
  std::array<float, 3> mean{};
  std::array<float, 3> deviation{};
};

// Read-only after construction: get() may be called by several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // Name and source, for reports: "digits (rendered, seed 1)".
  virtual std::string description() const = 0;
  virtual std::int64_t size() const = 0;
  virtual int classes() const = 0;
  virtual ImageShape shape() const = 0;
  virtual Normalization normalization() const = 0;
  // Writes sample `index` as height x width x channels bytes and returns its label in [0,
  // classes()). Throws std::invalid_argument if the index or the size of `pixels` is wrong.
  virtual int get(std::int64_t index, std::span<std::uint8_t> pixels) const = 0;
};

// Options for all kinds of data sets. A size of 0 means all samples, or the data set's default.
struct DatasetOptions {
  std::uint64_t seed = 1;  // of rendered data; data read from files ignores it
  std::int64_t train_size = 0;
  std::int64_t test_size = 0;
  int image_size = 0;  // side of the images of imagefolder; 0: imagefolder.h
};

// Opens one split of the data set that `specification` names. Throws DataError for an unknown
// scheme (the message lists the known ones), missing or damaged files, or more samples than exist.
std::unique_ptr<Dataset> open_dataset(std::string_view specification, Split split,
                                      const DatasetOptions& options = {});

// Help line of a scheme: its name, how to write it, and what it is.
struct DatasetScheme {
  std::string_view name;
  std::string_view usage;
  std::string_view summary;
};
std::vector<DatasetScheme> dataset_schemes();

// Throws std::invalid_argument unless `index` and the size of `pixels` fit the data set. Every
// get() begins with this check.
void check_sample_request(const Dataset& dataset, std::int64_t index,
                          std::span<const std::uint8_t> pixels);

}  // namespace kolo::train
