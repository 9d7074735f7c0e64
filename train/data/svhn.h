// `svhn:DIR`: Street View House Numbers, cropped digits (format 2).
//
// Netzer, Wang, Coates, Bissacco, Wu, Ng: "Reading Digits in Natural Images with Unsupervised
// Feature Learning", 2011; http://ufldl.stanford.edu/housenumbers/ . DIR holds train_32x32.mat and
// test_32x32.mat, or a subset under a name that contains it (train_32x32.subset.mat). Each has X,
// uint8, 32 x 32 x 3 x N with the row innermost, and y, N labels, where 10 means the digit 0. The
// files are read into memory completely: 3 KiB per sample.
#pragma once

#include <memory>
#include <string_view>

#include "train/data/dataset.h"

namespace kolo::train {

// Opens the data set; `argument` is the directory. Throws DataError if a file is missing, truncated
// or of a different shape.
std::unique_ptr<Dataset> open_svhn(std::string_view argument, Split split,
                                   const DatasetOptions& options);

}  // namespace kolo::train
