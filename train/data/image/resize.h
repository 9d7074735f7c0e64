// Resizing of images, with the bytes of Pillow.
//
// Bilinear with antialiasing: each new pixel is a mean of the old ones under a triangle, which is
// as wide as two new pixels where the image shrinks. First each row, then each column, with fixed
// point weights and bytes between, as Pillow's Image.resize(..., Image.Resampling.BILINEAR).
#pragma once

#include "train/data/image/image_file.h"

namespace kolo::train {

// The middle square of `image`, resized to side x side: torchvision's Resize(side) and
// CenterCrop(side). The short side of the image becomes `side`, then both ends of the long side are
// cut off. Only pixels that remain are computed.
Image middle_square(Image image, int side);

}  // namespace kolo::train
