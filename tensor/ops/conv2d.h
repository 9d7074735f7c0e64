#pragma once

#include <cstdint>

#include "tensor/autograd.h"

namespace kolo::tensor {

// Each setting is the same in both dimensions of the image.
struct Conv2dSettings {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool has_bias = false;
};

// x: N, H, W, C; weight: shape [out][C][kernel][kernel]; bias: [out], or -1 for none. Result: N,
// H', W', out with H' = (H + 2 padding - kernel) / stride + 1. Throws std::invalid_argument when
// shapes do not fit.
Value conv2d(Tape& tape, const Value& x, ParameterId weight, ParameterId bias,
             const Conv2dSettings& settings);

}  // namespace kolo::tensor
