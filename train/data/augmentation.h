// Augmentation of training samples: a random shift, as padding and cropping, and a random mirror
// image. Off by default.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "train/data/dataset.h"

namespace kolo::train {

struct Augmentation {
  int crop_padding = 0;   // largest shift in pixels, each way; 0: none
  bool has_flip = false;  // every second sample is mirrored, left to right
};

// The values of --augment: "none", "crop" or "crop,flip". The padding is an eighth of the shorter
// side, as usual: 4 for 32 x 32.
Augmentation augmentation_from(std::string_view name, const ImageShape& shape);

// Changes `pixels` (one sample of `shape`) in place. Where the shift leaves the picture, its border
// pixels repeat. A pure function of the sample and (seed, epoch, index).
void augment(const Augmentation& augmentation, const ImageShape& shape, std::uint64_t seed,
             std::int64_t epoch, std::int64_t index, std::span<std::uint8_t> pixels);

}  // namespace kolo::train
