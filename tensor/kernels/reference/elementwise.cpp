#include <algorithm>

#include "tensor/kernels/reference/reference.h"

namespace kolo::tensor {

void Reference::relu_forward(const Tensor& x, const Tensor& y) {
  for (std::int64_t k = 0; k < x.count(); ++k) y.data()[k] = std::max(x.data()[k], 0.0F);
}

void Reference::relu_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  for (std::int64_t k = 0; k < y.count(); ++k) {
    dx.data()[k] = y.data()[k] > 0 ? dy.data()[k] : 0.0F;
  }
}

void Reference::add_forward(const Tensor& a, const Tensor& b, bool has_relu, const Tensor& y) {
  for (std::int64_t k = 0; k < a.count(); ++k) {
    const float sum = a.data()[k] + b.data()[k];
    y.data()[k] = has_relu ? std::max(sum, 0.0F) : sum;
  }
}

}  // namespace kolo::tensor
