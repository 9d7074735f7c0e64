#include <algorithm>

#include "tensor/kernels/onednn/onednn.h"
#include "tensor/kernels/onednn/taps.h"

namespace kolo::tensor::onednn {

namespace {

std::int64_t weights_of(const Conv2dShape& c) { return c.kernel * c.kernel * c.in * c.out; }

}  // namespace

void Onednn::conv2d_forward(const Conv2dShape& shape, const Tensor& x, const float* weight,
                            const float* bias, const Tensor& y) {
  const void* const in = operand(x.count(), x.data(), 0);
  if (prefers_taps(shape)) {
    taps_forward(shape, multiplications_, in, operand(weights_of(shape), weight, 1), y.data());
  } else {
    convolutions_.forward(shape, in, weight, y.data());
  }
  if (bias != nullptr) loops_.add_row({y.count() / shape.out, shape.out}, bias, y.data());
}

void Onednn::conv2d_backward_data(const Conv2dShape& shape, const float* weight, const Tensor& dy,
                                  const Tensor& dx) {
  const void* const out = operand(dy.count(), dy.data(), 0);
  if (prefers_taps(shape)) {
    taps_backward_data(shape, multiplications_, operand(weights_of(shape), weight, 1), out,
                       dx.data());
  } else {
    convolutions_.backward_data(shape, weight, out, dx.data());
  }
}

void Onednn::conv2d_backward_weight(const Conv2dShape& shape, const Tensor& x, const Tensor& dy,
                                    float* weight_gradient, float* bias_gradient) {
  const void* const in = operand(x.count(), x.data(), 0);
  const void* const out = operand(dy.count(), dy.data(), 1);
  if (prefers_taps(shape)) {
    taps_backward_weight(shape, multiplications_, in, out, weight_gradient);
  } else {
    convolutions_.backward_weight(shape, in, out, weight_gradient);
  }
  if (bias_gradient == nullptr) return;
  std::fill_n(bias_gradient, shape.out, 0.0F);
  loops_.column_sums({dy.count() / shape.out, shape.out}, dy.data(), bias_gradient);
}

}  // namespace kolo::tensor::onednn
