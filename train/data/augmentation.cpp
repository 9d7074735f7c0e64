#include "train/data/augmentation.h"

#include <algorithm>
#include <vector>

#include "train/data/random.h"

namespace kolo::train {
namespace {

// Moves the picture; border pixels repeat.
void shift(const ImageShape& shape, int down, int right, std::span<std::uint8_t> pixels) {
  const std::vector<std::uint8_t> original(pixels.begin(), pixels.end());
  auto to = pixels.begin();
  for (int y = 0; y < shape.height; ++y) {
    const int from_y = std::clamp(y - down, 0, shape.height - 1);
    for (int x = 0; x < shape.width; ++x) {
      const int from_x = std::clamp(x - right, 0, shape.width - 1);
      const auto from =
          original.begin() + (std::ptrdiff_t{from_y} * shape.width + from_x) * shape.channels;
      to = std::copy(from, from + shape.channels, to);
    }
  }
}

void mirror(const ImageShape& shape, std::span<std::uint8_t> pixels) {
  const auto pixel = static_cast<std::size_t>(shape.channels);
  const std::size_t row_bytes = pixel * static_cast<std::size_t>(shape.width);
  for (std::size_t row = 0; row < pixels.size(); row += row_bytes) {
    std::size_t left = row, right = row + row_bytes - pixel;
    for (; left < right; left += pixel, right -= pixel)
      std::ranges::swap_ranges(pixels.subspan(left, pixel), pixels.subspan(right, pixel));
  }
}

}  // namespace

Augmentation augmentation_from(std::string_view name, const ImageShape& shape) {
  if (name == "none") return {};
  return {std::max(1, std::min(shape.height, shape.width) / 8), name == "crop,flip"};
}

void augment(const Augmentation& augmentation, const ImageShape& shape, std::uint64_t seed,
             std::int64_t epoch, std::int64_t index, std::span<std::uint8_t> pixels) {
  // Unique for up to 2^40 samples and 2^24 epochs.
  const auto place = (static_cast<std::uint64_t>(epoch) << 40) + static_cast<std::uint64_t>(index);
  Random random(seed, Purpose::augmentation, place);
  if (augmentation.crop_padding > 0) {
    const auto choices = static_cast<std::uint32_t>(2 * augmentation.crop_padding + 1);
    const int down = static_cast<int>(random.below(choices)) - augmentation.crop_padding;
    const int right = static_cast<int>(random.below(choices)) - augmentation.crop_padding;
    shift(shape, down, right, pixels);
  }
  if (augmentation.has_flip && random.chance(0.5f)) mirror(shape, pixels);
}

}  // namespace kolo::train
