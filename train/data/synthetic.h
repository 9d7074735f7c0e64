// `synthetic[:HxWxC[:CLASSES]]`: random images of any shape, to measure speed without reading.
//
// A sample is a copy of bytes in memory that were drawn once, so it costs what memory costs. The
// bytes are noise without a pattern, from a different place of one buffer for each sample. Labels
// are balanced in every prefix (label = i mod CLASSES). A model cannot learn them, except by heart.
#pragma once

#include <memory>
#include <string_view>

#include "train/data/dataset.h"

namespace kolo::train {

inline constexpr std::int64_t kSyntheticTrainSize = 10'000;
inline constexpr std::int64_t kSyntheticTestSize = 2'000;

// Opens the data set; `argument` is "HxWxC:CLASSES", "HxWxC" (10 classes) or empty (32x32x3).
// Throws DataError for another form, a side above 4096, or other than 1 to 3 channels.
std::unique_ptr<Dataset> open_synthetic(std::string_view argument, Split split,
                                        const DatasetOptions& options);

}  // namespace kolo::train
