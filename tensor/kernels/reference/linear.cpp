#include <algorithm>

#include "tensor/kernels/reference/reference.h"

namespace kolo::tensor {

void Reference::linear_forward(const Tensor& x, const float* weight, const float* bias,
                               const Tensor& y) {
  const std::int64_t rows = x.shape()[0], in = x.shape()[1], out = y.shape()[1];
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t o = 0; o < out; ++o) {
      float sum = bias[o];
      for (std::int64_t i = 0; i < in; ++i) sum += x.data()[n * in + i] * weight[o * in + i];
      y.data()[n * out + o] = sum;
    }
  }
}

void Reference::linear_backward(const Tensor& x, const float* weight, const Tensor& dy,
                                float* weight_gradient, float* bias_gradient, const Tensor& dx) {
  const std::int64_t rows = x.shape()[0], in = x.shape()[1], out = dy.shape()[1];
  std::fill_n(weight_gradient, out * in, 0.0F);
  std::fill_n(bias_gradient, out, 0.0F);
  if (!dx.is_empty()) std::fill_n(dx.data(), dx.count(), 0.0F);
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t o = 0; o < out; ++o) {
      const float gradient = dy.data()[n * out + o];
      bias_gradient[o] += gradient;
      for (std::int64_t i = 0; i < in; ++i) {
        weight_gradient[o * in + i] += gradient * x.data()[n * in + i];
        if (!dx.is_empty()) dx.data()[n * in + i] += gradient * weight[o * in + i];
      }
    }
  }
}

}  // namespace kolo::tensor
