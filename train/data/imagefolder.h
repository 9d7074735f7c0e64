// `imagefolder:DIR`: images in folders, one folder per class, as torchvision's ImageFolder.
//
// DIR/train/CLASS and DIR/val/CLASS (or DIR/test/CLASS) hold JPEG or PNG files, also in folders
// below: the layout of ImageNet. Both splits must have the same classes. A class's number is its
// place among the names, sorted. The files are listed at the start, and read and decoded in get().
//
// All images get one shape: the short side is resized to `image_size` and the middle square is cut
// out (resize.h). Colours are normalised with ImageNet's constants.
#pragma once

#include <memory>
#include <string_view>

#include "train/data/dataset.h"

namespace kolo::train {

// Of the default image size, which is the short side of the first training image.
inline constexpr int kMostDefaultImageSize = 224;

// Opens the data set; `argument` is the directory. A limited number of samples is taken from all
// classes in turn. Throws DataError if a folder is missing or has no images, if the classes of the
// splits differ, or if the first image cannot be read; get() throws it for the other images.
std::unique_ptr<Dataset> open_imagefolder(std::string_view argument, Split split,
                                          const DatasetOptions& options);

}  // namespace kolo::train
