#include "train/data/augmentation.h"

#include <algorithm>
#include <vector>

#include "train/data/random.h"

namespace kolo::train {

void augment(const Augmentation& augmentation, const ImageShape& shape, std::uint64_t seed,
             std::int64_t epoch, std::int64_t index, std::span<std::uint8_t> pixels) {
  if (augmentation.crop_padding <= 0) return;
  // Unique for up to 2^40 samples and 2^24 epochs.
  const auto place = (static_cast<std::uint64_t>(epoch) << 40) + static_cast<std::uint64_t>(index);
  Random random(seed, Purpose::augmentation, place);
  const auto choices = static_cast<std::uint32_t>(2 * augmentation.crop_padding + 1);
  const int down = static_cast<int>(random.below(choices)) - augmentation.crop_padding;
  const int right = static_cast<int>(random.below(choices)) - augmentation.crop_padding;
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

}  // namespace kolo::train
