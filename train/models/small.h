// A small convolutional network for tests: each kind of layer once or twice, 10,266 parameters for
// 32x32 RGB and 10 classes, and `digits` learnt to more than 80 % within seconds.
#pragma once

#include <memory>

#include "train/models/model.h"

namespace kolo::train {

// The row of the table: two times 3x3 convolution (stride 2), batch norm, ReLU; 2x2 max-pooling;
// linear. Height and width of at least 8.
std::unique_ptr<tensor::Model> make_small(tensor::Parameters& parameters,
                                          const ModelSettings& settings);

}  // namespace kolo::train
