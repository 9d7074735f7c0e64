// Residual networks: ResNet-18 and -34 of basic blocks, ResNet-50 and -101 (v1.5) of bottlenecks.
//
// He, Zhang, Ren, Sun: "Deep Residual Learning for Image Recognition", 2015. "v1.5" is
// torchvision's form: where a block halves the image, the stride is in its 3x3 convolution, not in
// the first 1x1. Names and shapes of parameters and buffers, and their order, are torchvision's.
// Parameters at 1000 classes: 11,689,512, 21,797,672, 25,557,032 and 44,549,160.
#pragma once

#include <memory>

#include "train/models/chain.h"

namespace kolo::train {

// All take any image that leaves at least one pixel at the end. With Stem::cifar, bn1 and conv1
// have the same names, and conv1 is 64 x C x 3 x 3.
std::unique_ptr<Chain> make_resnet18(tensor::Parameters& parameters, const ModelSettings& settings);
std::unique_ptr<Chain> make_resnet34(tensor::Parameters& parameters, const ModelSettings& settings);
std::unique_ptr<Chain> make_resnet50(tensor::Parameters& parameters, const ModelSettings& settings);
std::unique_ptr<Chain> make_resnet101(tensor::Parameters& parameters,
                                      const ModelSettings& settings);

}  // namespace kolo::train
