#include "train/data/digits.h"

#include <fmt/format.h>

#include "train/data/digits_paint.h"
#include "train/data/digits_scene.h"
#include "train/data/stroke_distance_field.h"

namespace kolo::train {
namespace {

class Digits final : public Dataset {
 public:
  Digits(Split split, std::int64_t size, std::uint64_t seed)
      : split_(split), size_(size), seed_(seed) {}

  std::string description() const override {
    return fmt::format("digits (rendered, {}, seed {})", name_of(split_), seed_);
  }
  std::int64_t size() const override { return size_; }
  int classes() const override { return 10; }
  ImageShape shape() const override {
    return {StrokeDistanceField::kSide, StrokeDistanceField::kSide, 3};
  }
  // Measured over the first 10,000 training samples of seed 1.
  Normalization normalization() const override {
    return {{117.4f, 117.5f, 117.2f}, {57.7f, 56.8f, 58.5f}};
  }
  int get(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    check_sample_request(*this, index, pixels);
    const Purpose purpose = split_ == Split::train ? Purpose::digits_train : Purpose::digits_test;
    Random random(seed_, purpose, static_cast<std::uint64_t>(index));
    const int label = static_cast<int>(index % 10);
    paint(draw_scene(random, label), random, pixels);
    return label;
  }

 private:
  Split split_;
  std::int64_t size_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Dataset> open_digits(std::string_view, Split split, const DatasetOptions& options) {
  const bool is_train = split == Split::train;
  std::int64_t size = is_train ? options.train_size : options.test_size;
  if (size == 0) size = is_train ? kDigitsTrainSize : kDigitsTestSize;
  if (size > std::int64_t{1} << 31) {
    throw DataError(fmt::format(
        "data set 'digits': at most 2147483648 {} samples can be rendered, {} were requested",
        name_of(split), size));
  }
  return std::make_unique<Digits>(split, size, options.seed);
}

}  // namespace kolo::train
