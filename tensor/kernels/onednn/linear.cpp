#include <algorithm>

#include "tensor/kernels/onednn/gemm.h"
#include "tensor/kernels/onednn/onednn.h"

namespace kolo::tensor::onednn {

void Onednn::linear_forward(const Tensor& x, const float* weight, const float* bias,
                            const Tensor& y) {
  const std::int64_t rows = x.shape()[0], in = x.shape()[1], out = y.shape()[1];
  multiply(rows, out, in, {x.data(), in}, {weight, in, true}, false, y.data(), out);
  loops_.add_row({rows, out}, bias, y.data());
}

void Onednn::linear_backward(const Tensor& x, const float* weight, const Tensor& dy,
                             float* weight_gradient, float* bias_gradient, const Tensor& dx) {
  const std::int64_t rows = x.shape()[0], in = x.shape()[1], out = dy.shape()[1];
  multiply(out, in, rows, {dy.data(), out, true}, {x.data(), in}, false, weight_gradient, in);
  std::fill_n(bias_gradient, out, 0.0F);
  loops_.column_sums({rows, out}, dy.data(), bias_gradient);
  if (!dx.is_empty()) multiply(rows, in, out, {dy.data(), out}, {weight, in}, false, dx.data(), in);
}

}  // namespace kolo::tensor::onednn
