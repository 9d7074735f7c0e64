#include "train/data/dataset.h"

#include <fmt/format.h>

#include "train/data/cifar10.h"
#include "train/data/digits.h"
#include "train/data/imagefolder.h"
#include "train/data/mnist.h"
#include "train/data/svhn.h"
#include "train/data/synthetic.h"

namespace kolo::train {
namespace {

enum class Argument { none, optional, required };

// A row of the table. `open` gets the text after the colon.
struct Row {
  DatasetScheme help;
  Argument argument;
  std::unique_ptr<Dataset> (*open)(std::string_view argument, Split, const DatasetOptions&);
};

constexpr Row kTable[] = {
    {{"digits", "digits", "house-number-like digits, rendered by the program"},
     Argument::none,
     open_digits},
    {{"svhn", "svhn:DIR", "Street View House Numbers, cropped .mat files in DIR"},
     Argument::required,
     open_svhn},
    {{"mnist", "mnist:DIR", "MNIST, handwritten digits, IDX files in DIR"},
     Argument::required,
     open_mnist},
    {{"cifar10", "cifar10:DIR", "CIFAR-10, objects of ten classes, binary files in DIR"},
     Argument::required,
     open_cifar10},
    {{"imagefolder", "imagefolder:DIR", "JPEG and PNG files in DIR/train/CLASS and DIR/val/CLASS"},
     Argument::required,
     open_imagefolder},
    {{"synthetic", "synthetic[:HxWxC[:CLASSES]]", "random images, to measure speed"},
     Argument::optional,
     open_synthetic},
};

std::string known_schemes() {
  std::string list;
  for (const Row& row : kTable) {
    if (!list.empty()) list += ", ";
    list += row.help.usage;
  }
  return list;
}

}  // namespace

std::string_view name_of(Split split) { return split == Split::train ? "train" : "test"; }

std::unique_ptr<Dataset> open_dataset(std::string_view specification, Split split,
                                      const DatasetOptions& options) {
  const std::size_t colon = specification.find(':');
  const std::string_view scheme = specification.substr(0, colon);
  const std::string_view argument =
      colon == std::string_view::npos ? std::string_view{} : specification.substr(colon + 1);
  if (options.train_size < 0 || options.test_size < 0) {
    throw DataError(fmt::format(
        "data set '{}': train and test size must not be negative (they are {} and {}); 0 means all",
        specification, options.train_size, options.test_size));
  }
  for (const Row& row : kTable) {
    if (row.help.name != scheme) continue;
    const bool has_colon = colon != std::string_view::npos;
    if (has_colon ? row.argument == Argument::none || argument.empty()
                  : row.argument == Argument::required) {
      throw DataError(
          fmt::format("data set '{}': write it as '{}'", specification, row.help.usage));
    }
    return row.open(argument, split, options);
  }
  throw DataError(
      fmt::format("unknown data set '{}'; expected one of {}", specification, known_schemes()));
}

std::vector<DatasetScheme> dataset_schemes() {
  std::vector<DatasetScheme> schemes;
  for (const Row& row : kTable) schemes.push_back(row.help);
  return schemes;
}

void check_sample_request(const Dataset& dataset, std::int64_t index,
                          std::span<const std::uint8_t> pixels) {
  if (index < 0 || index >= dataset.size()) {
    throw std::invalid_argument(fmt::format("{}: sample {} was requested, but there are {}",
                                            dataset.description(), index, dataset.size()));
  }
  if (static_cast<std::int64_t>(pixels.size()) != dataset.shape().elements()) {
    throw std::invalid_argument(fmt::format("{}: the buffer has {} bytes, but a sample has {}",
                                            dataset.description(), pixels.size(),
                                            dataset.shape().elements()));
  }
}

}  // namespace kolo::train
