// Augmentation of training samples: a random shift, as padding and cropping. Off by default.
#pragma once

#include <cstdint>
#include <span>

#include "train/data/dataset.h"

namespace kolo::train {

struct Augmentation {
  int crop_padding = 0;  // largest shift in pixels, each way; 0: none
};

// Shifts `pixels` (one sample of `shape`) in place; border pixels repeat. A pure function of the
// sample and (seed, epoch, index).
void augment(const Augmentation& augmentation, const ImageShape& shape, std::uint64_t seed,
             std::int64_t epoch, std::int64_t index, std::span<std::uint8_t> pixels);

}  // namespace kolo::train
