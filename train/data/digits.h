// `digits`: pictures that look like the cropped digits of house numbers, drawn by the program
// itself.
//
// 32 x 32 RGB. The digit in the middle is the label; to its sides, as in real crops, parts of the
// number's other digits may show. Design of the digits, pen, slant, perspective, colours and
// contrast, outline and shadow, wall (paint, planks, bricks, plaques), light, blur and noise all
// vary. Sample i of a split is a pure function of (seed, split, i): nothing is stored, any size
// goes, every rank can make any sample, and labels are balanced in every prefix (label = i mod 10).
// Same bytes on every platform: integer random numbers, and only operations that IEEE 754 rounds
// exactly (built without contraction to fused multiply-add). Cost: some 50 us a sample.
#pragma once

#include <memory>
#include <string_view>

#include "train/data/dataset.h"

namespace kolo::train {

inline constexpr std::int64_t kDigitsTrainSize = 10'000;
inline constexpr std::int64_t kDigitsTestSize = 2'000;

// The row of the table: no argument; sizes default to the constants above. Any size up to 2^31 can
// be had.
std::unique_ptr<Dataset> open_digits(std::string_view argument, Split split,
                                     const DatasetOptions& options);

}  // namespace kolo::train
