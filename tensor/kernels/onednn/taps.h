#pragma once

// Convolution as matrix multiplications, one for each run of (output pixel, input pixel) pairs that
// share a place of the window (a tap): no copy, no padding multiplied, the batch is part of the
// rows.
//
// It is the best way for 1 x 1 windows, and for small images: at 2 x 2 pixels 5/9 of a padded 3 x 3
// window lies outside, at one pixel 8/9, and a direct convolution, which works image by image,
// reads all weights again for each.

#include <cstdint>
#include <vector>

#include "tensor/kernels/kernels.h"

namespace kolo::tensor::onednn {

// Pixels `in_begin + i * in_step` of the input meet `out_begin + i * out_step` of the output, for
// i < rows.
struct Run {
  std::int64_t tap;
  std::int64_t in_begin, in_step, out_begin, out_step, rows;
};

// All runs of a convolution, ordered by tap.
std::vector<Run> tap_runs(const Conv2dShape& shape);

// True where runs are the faster way.
bool prefers_taps(const Conv2dShape& shape);

void taps_forward(const Conv2dShape& shape, const float* x, const float* weight, float* y);
void taps_backward_data(const Conv2dShape& shape, const float* weight, const float* dy, float* dx);
void taps_backward_weight(const Conv2dShape& shape, const float* x, const float* dy,
                          float* weight_gradient);

}  // namespace kolo::tensor::onednn
