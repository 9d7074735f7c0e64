#include "train/data/image/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

namespace kolo::train {
namespace {

constexpr int kWeightBits = 22;  // of a weight's fraction, as in Pillow
constexpr std::size_t kChannels = 3;

// The old pixels of one new pixel: `count` from `first` on.
struct Taps {
  int first = 0;
  int count = 0;
  std::size_t weights = 0;  // index of the first weight
};

// How one direction of an image is resized: the taps of the new pixels that are kept.
struct Plan {
  std::vector<Taps> taps;
  std::vector<int> weights;

  // The old pixels that are used.
  int first() const { return taps.front().first; }
  int end() const { return taps.back().first + taps.back().count; }
};

// `from` old pixels become `to`, of which `kept` from `skipped` on are computed.
Plan plan_of(int from, std::int64_t to, std::int64_t skipped, int kept) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(scale, 1.0);
  Plan plan;
  std::vector<double> exact;
  for (std::int64_t at = skipped; at < skipped + kept; ++at) {
    const double centre = (static_cast<double>(at) + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - reach + 0.5));
    const int end = std::min(from, static_cast<int>(centre + reach + 0.5));
    exact.clear();
    double sum = 0;
    for (int x = first; x < end; ++x) {
      exact.push_back(std::max(0.0, 1 - std::abs((x - centre + 0.5) / reach)));
      sum += exact.back();
    }
    plan.taps.push_back({first, end - first, plan.weights.size()});
    for (const double weight : exact)
      plan.weights.push_back(static_cast<int>(0.5 + weight / sum * (1 << kWeightBits)));
  }
  return plan;
}

constexpr int kHalf = 1 << (kWeightBits - 1);

std::uint8_t byte_of(int sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

// Resizes the rows from `first` to before `end`.
Image resize_rows(const Image& image, const Plan& plan, int first, int end) {
  Image result{end - first, static_cast<int>(plan.taps.size()), {}};
  const std::size_t old_bytes = kChannels * static_cast<std::size_t>(image.width);
  result.pixels.resize(kChannels * plan.taps.size() * static_cast<std::size_t>(result.height));
  std::uint8_t* to = result.pixels.data();
  for (int y = first; y < end; ++y) {
    const std::uint8_t* row = image.pixels.data() + static_cast<std::size_t>(y) * old_bytes;
    for (const Taps& taps : plan.taps) {
      const std::uint8_t* pixel = row + kChannels * static_cast<std::size_t>(taps.first);
      const int* weight = plan.weights.data() + taps.weights;
      int sums[kChannels] = {kHalf, kHalf, kHalf};
      for (int i = 0; i < taps.count; ++i, ++weight, pixel += kChannels) {
        for (std::size_t channel = 0; channel < kChannels; ++channel)
          sums[channel] += pixel[channel] * *weight;
      }
      for (const int sum : sums) *to++ = byte_of(sum);
    }
  }
  return result;
}

// Resizes the columns of an image, whose first row has the number `first` in the plan.
Image resize_columns(const Image& image, const Plan& plan, int first) {
  Image result{static_cast<int>(plan.taps.size()), image.width, {}};
  const std::size_t row_bytes = kChannels * static_cast<std::size_t>(image.width);
  result.pixels.resize(row_bytes * plan.taps.size());
  std::vector<int> sums(row_bytes);
  std::uint8_t* to = result.pixels.data();
  for (const Taps& taps : plan.taps) {
    const std::uint8_t* row =
        image.pixels.data() + static_cast<std::size_t>(taps.first - first) * row_bytes;
    std::ranges::fill(sums, kHalf);
    for (int i = 0; i < taps.count; ++i, row += row_bytes) {
      const int weight = plan.weights[taps.weights + static_cast<std::size_t>(i)];
      for (std::size_t at = 0; at < row_bytes; ++at) sums[at] += row[at] * weight;
    }
    to = std::ranges::transform(sums, to, byte_of).out;
  }
  return result;
}

// Half of `excess`, rounded to an even number in the middle, as Python's round() does.
std::int64_t cut_of(std::int64_t excess) { return excess / 2 + (excess % 4 == 3 ? 1 : 0); }

}  // namespace

Image middle_square(Image image, int side) {
  if (side < 1 || image.height < 1 || image.width < 1) {
    throw std::invalid_argument(
        fmt::format("middle_square: {} x {} to {}", image.width, image.height, side));
  }
  if (image.height == side && image.width == side) return image;
  const int least = std::min(image.height, image.width);
  const std::int64_t height = std::int64_t{side} * image.height / least;
  const std::int64_t width = std::int64_t{side} * image.width / least;
  const Plan rows = plan_of(image.width, width, cut_of(width - side), side);
  const Plan columns = plan_of(image.height, height, cut_of(height - side), side);
  return resize_columns(resize_rows(image, rows, columns.first(), columns.end()), columns,
                        columns.first());
}

}  // namespace kolo::train
