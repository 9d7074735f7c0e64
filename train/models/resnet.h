// ResNet-50 v1.5.
//
// He, Zhang, Ren, Sun: "Deep Residual Learning for Image Recognition", 2015. "v1.5" is
// torchvision's form: where a block halves the image, the stride is in its 3x3 convolution, not in
// the first 1x1. Names and shapes of parameters and buffers, and their order, are torchvision's:
// 25,557,032 parameters at 1000 classes, 23,528,522 at 10.
#pragma once

#include <memory>

#include "train/models/model.h"

namespace kolo::train {

// Takes any image that leaves at least one pixel at the end. With Stem::cifar, bn1 and conv1 have
// the same names, and conv1 is 64 x C x 3 x 3.
std::unique_ptr<tensor::Model> make_resnet50(tensor::Parameters& parameters,
                                             const ModelSettings& settings);

}  // namespace kolo::train
