// `mnist:DIR`: MNIST, handwritten digits, 28 x 28 in grey.
//
// LeCun, Bottou, Bengio, Haffner: "Gradient-Based Learning Applied to Document Recognition", 1998.
// DIR holds the four IDX files train-images-idx3-ubyte, train-labels-idx1-ubyte,
// t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte. Each may end in .gz, and may be spelled with a
// dot, as in train-images.idx3-ubyte. If several exist, the plain one is read. The files are read
// into memory completely: 784 bytes per sample.
#pragma once

#include <memory>
#include <string_view>

#include "train/data/dataset.h"

namespace kolo::train {

// Opens the data set; `argument` is the directory. Throws DataError if a file is missing, damaged
// or of another form, or if images and labels do not fit each other.
std::unique_ptr<Dataset> open_mnist(std::string_view argument, Split split,
                                    const DatasetOptions& options);

}  // namespace kolo::train
