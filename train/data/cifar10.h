// `cifar10:DIR`: CIFAR-10, 32 x 32 in colour, ten classes of objects.
//
// Krizhevsky: "Learning Multiple Layers of Features from Tiny Images", 2009. DIR holds the files
// of the binary version: data_batch_1.bin to data_batch_5.bin, of which some may be missing, and
// test_batch.bin. DIR may also be the folder above, in which the archive was unpacked
// (cifar-10-batches-bin). The files are read into memory completely: 3,072 bytes per sample.
#pragma once

#include <memory>
#include <string_view>

#include "train/data/dataset.h"

namespace kolo::train {

// Opens the data set; `argument` is the directory. Throws DataError if no file of the split is
// there, or if a file is damaged or of another form.
std::unique_ptr<Dataset> open_cifar10(std::string_view argument, Split split,
                                      const DatasetOptions& options);

}  // namespace kolo::train
