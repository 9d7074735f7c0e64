#include <algorithm>

#include "tensor/kernels/reference/reference.h"

namespace kolo::tensor {

void Reference::linear_forward(const Tensor& x, const float* weight, const float* bias,
                               const Tensor& y) {
  const std::int64_t rows = x.shape()[0], in = x.shape()[1], out = y.shape()[1];
  const Operand inputs(precision_, x.data(), x.count()), weights(precision_, weight, in * out);
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t o = 0; o < out; ++o) {
      float sum = bias[o];
      for (std::int64_t i = 0; i < in; ++i)
        sum += inputs.data()[n * in + i] * weights.data()[o * in + i];
      y.data()[n * out + o] = sum;
    }
  }
}

void Reference::linear_backward(const Tensor& x, const float* weight, const Tensor& dy,
                                float* weight_gradient, float* bias_gradient, const Tensor& dx) {
  const std::int64_t rows = x.shape()[0], in = x.shape()[1], out = dy.shape()[1];
  const Operand inputs(precision_, x.data(), x.count()), weights(precision_, weight, in * out);
  const Operand gradients(precision_, dy.data(), dy.count());
  std::fill_n(weight_gradient, out * in, 0.0F);
  std::fill_n(bias_gradient, out, 0.0F);
  if (!dx.is_empty()) std::fill_n(dx.data(), dx.count(), 0.0F);
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t o = 0; o < out; ++o) {
      const float gradient = gradients.data()[n * out + o];
      bias_gradient[o] += dy.data()[n * out + o];
      for (std::int64_t i = 0; i < in; ++i) {
        weight_gradient[o * in + i] += gradient * inputs.data()[n * in + i];
        if (!dx.is_empty()) dx.data()[n * in + i] += gradient * weights.data()[o * in + i];
      }
    }
  }
}

}  // namespace kolo::tensor
