// Small convolutional network for tests: each kind of layer once or twice, 10,266 parameters for
// 32x32 RGB and 10 classes. Learns `digits` to more than 80 % within seconds.
#pragma once

#include <memory>

#include "train/models/chain.h"

namespace kolo::train {

// Layers: twice 3x3 convolution (stride 2), batch norm, ReLU; then 2x2 max-pooling and linear.
// Height and width are at least 8.
std::unique_ptr<Chain> make_small(tensor::Parameters& parameters, const ModelSettings& settings);

}  // namespace kolo::train
