// Data set `digits`: synthetic pictures of house-number digits, drawn by the program.
//
// 32 x 32 RGB. The digit in the middle is the label. As in real crops, parts of neighbouring digits
// may be visible. Design of the digits, pen, slant, perspective, colours and contrast, outline and
// shadow, wall (paint, planks, bricks, plaques), light, blur and noise vary. Sample i of a split is
// a pure function of (seed, split, i). So nothing is stored, any size is possible, every rank can
// make any sample, and labels are balanced in every prefix (label = i mod 10). The bytes are the
// same on every platform: integer random numbers, and only operations that IEEE 754 rounds exactly
// (built without contraction to fused multiply-add). Cost: about 50 us per sample.
#pragma once

#include <memory>
#include <string_view>

#include "train/data/dataset.h"

namespace kolo::train {

inline constexpr std::int64_t kDigitsTrainSize = 10'000;
inline constexpr std::int64_t kDigitsTestSize = 2'000;

// Opens the data set; takes no argument. Sizes default to the constants above, and can be up to
// 2^31.
std::unique_ptr<Dataset> open_digits(std::string_view argument, Split split,
                                     const DatasetOptions& options);

}  // namespace kolo::train
