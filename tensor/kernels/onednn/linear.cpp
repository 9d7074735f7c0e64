#include <algorithm>

#include "tensor/kernels/onednn/onednn.h"

namespace kolo::tensor::onednn {

void Onednn::linear_forward(const Tensor& x, const float* weight, const float* bias,
                            const Tensor& y) {
  const std::int64_t rows = x.shape()[0], in = x.shape()[1], out = y.shape()[1];
  multiplications_.multiply(rows, out, in, {operand(x.count(), x.data(), 0), in},
                            {operand(in * out, weight, 1), in, true}, false, y.data(), out);
  loops_.add_row({rows, out}, bias, y.data());
}

void Onednn::linear_backward(const Tensor& x, const float* weight, const Tensor& dy,
                             float* weight_gradient, float* bias_gradient, const Tensor& dx) {
  const std::int64_t rows = x.shape()[0], in = x.shape()[1], out = dy.shape()[1];
  const void* const dz = operand(dy.count(), dy.data(), 0);
  multiplications_.multiply(out, in, rows, {dz, out, true}, {operand(x.count(), x.data(), 1), in},
                            false, weight_gradient, in);
  std::fill_n(bias_gradient, out, 0.0F);
  loops_.column_sums({rows, out}, dy.data(), bias_gradient);
  if (dx.is_empty()) return;
  multiplications_.multiply(rows, in, out, {dz, out}, {operand(in * out, weight, 1), in}, false,
                            dx.data(), in);
}

}  // namespace kolo::tensor::onednn
