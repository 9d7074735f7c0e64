#pragma once

// Convolution as matrix multiplications.
//
// A tap is a position in the window. There is one multiplication per run of (output pixel, input
// pixel) pairs of a tap. It needs no copy, does not multiply padding, and the rows span the batch.
//
// This is the fastest method for 1 x 1 windows and for small images. At 2 x 2 pixels 5/9 of a
// padded 3 x 3 window are outside of the image, at one pixel 8/9. And a direct convolution works
// image by image, and reads all weights again for each.

#include <cstdint>
#include <vector>

#include "tensor/kernels/kernels.h"
#include "tensor/kernels/onednn/gemm.h"

namespace kolo::tensor::onednn {

// Pairs of pixels: `in_begin + i * in_step` of the input and `out_begin + i * out_step` of the
// output, for i < rows.
struct Run {
  std::int64_t tap;
  std::int64_t in_begin, in_step, out_begin, out_step, rows;
};

// All runs of a convolution, ordered by tap.
std::vector<Run> tap_runs(const Conv2dShape& shape);

// True if this method is faster than the direct convolution.
bool prefers_taps(const Conv2dShape& shape);

// x, weight and dy are of the precision of `by`.
void taps_forward(const Conv2dShape& shape, Multiplications& by, const void* x, const void* weight,
                  float* y);
void taps_backward_data(const Conv2dShape& shape, Multiplications& by, const void* weight,
                        const void* dy, float* dx);
void taps_backward_weight(const Conv2dShape& shape, Multiplications& by, const void* x,
                          const void* dy, float* weight_gradient);

}  // namespace kolo::tensor::onednn
