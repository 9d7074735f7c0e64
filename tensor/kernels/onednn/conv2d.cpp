#include <algorithm>

#include "tensor/kernels/onednn/onednn.h"
#include "tensor/kernels/onednn/taps.h"

namespace kolo::tensor::onednn {

void Onednn::conv2d_forward(const Conv2dShape& shape, const Tensor& x, const float* weight,
                            const float* bias, const Tensor& y) {
  if (prefers_taps(shape)) {
    taps_forward(shape, x.data(), weight, y.data());
  } else {
    convolutions_.forward(shape, x.data(), weight, y.data());
  }
  if (bias != nullptr) loops_.add_row({y.count() / shape.out, shape.out}, bias, y.data());
}

void Onednn::conv2d_backward_data(const Conv2dShape& shape, const float* weight, const Tensor& dy,
                                  const Tensor& dx) {
  if (prefers_taps(shape)) {
    taps_backward_data(shape, weight, dy.data(), dx.data());
  } else {
    convolutions_.backward_data(shape, weight, dy.data(), dx.data());
  }
}

void Onednn::conv2d_backward_weight(const Conv2dShape& shape, const Tensor& x, const Tensor& dy,
                                    float* weight_gradient, float* bias_gradient) {
  if (prefers_taps(shape)) {
    taps_backward_weight(shape, x.data(), dy.data(), weight_gradient);
  } else {
    convolutions_.backward_weight(shape, x.data(), dy.data(), weight_gradient);
  }
  if (bias_gradient == nullptr) return;
  std::fill_n(bias_gradient, shape.out, 0.0F);
  loops_.column_sums({dy.count() / shape.out, shape.out}, dy.data(), bias_gradient);
}

}  // namespace kolo::tensor::onednn
