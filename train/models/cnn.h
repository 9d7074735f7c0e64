// Convolutional network for MNIST, of the usual size: 421,642 parameters for 28x28 in grey and 10
// classes, 545,098 for 32x32 RGB.
//
// The layers, their names and initial values are those of PyTorch's MNIST example, with a pooling
// after each convolution, images padded, and no dropout.
#pragma once

#include <memory>

#include "train/models/chain.h"

namespace kolo::train {

// Layers: twice 3x3 convolution (32 and 64 channels), ReLU, 2x2 max-pooling; then linear to 128,
// ReLU, linear to the classes. Height and width are at least 4.
std::unique_ptr<Chain> make_cnn(tensor::Parameters& parameters, const ModelSettings& settings);

}  // namespace kolo::train
