// Convolution by its definition, with stride S and padding P:
//   y[n, p, q, o] = bias[o] + sum over r, s, i of x[n, p S - P + r, q S - P + s, i] w[o, i, r, s].
//
// All three passes visit the same (output pixel, tap) pairs, whose input pixel is inside the image.

#include <algorithm>

#include "tensor/kernels/reference/reference.h"

namespace kolo::tensor {

namespace {

// Calls visit(output pixel, input pixel, tap). Pixels are numbered in the whole batch, taps in the
// window.
template <typename Visit>
void for_each_tap(const Conv2dShape& c, Visit visit) {
  std::int64_t out_pixel = 0;
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t p = 0; p < c.out_h(); ++p) {
      for (std::int64_t q = 0; q < c.out_w(); ++q, ++out_pixel) {
        for (std::int64_t tap = 0; tap < c.kernel * c.kernel; ++tap) {
          const std::int64_t h = p * c.stride - c.padding + tap / c.kernel;
          const std::int64_t w = q * c.stride - c.padding + tap % c.kernel;
          if (h < 0 || h >= c.in_h || w < 0 || w >= c.in_w) continue;
          visit(out_pixel, (n * c.in_h + h) * c.in_w + w, tap);
        }
      }
    }
  }
}

}  // namespace

void Reference::conv2d_forward(const Conv2dShape& c, const Tensor& x, const float* weight,
                               const float* bias, const Tensor& y) {
  const Operand in(precision_, x.data(), x.count());
  const Operand weights(precision_, weight, c.kernel * c.kernel * c.in * c.out);
  float* const out = y.data();
  for (std::int64_t pixel = 0; pixel < y.count() / c.out; ++pixel) {
    for (std::int64_t o = 0; o < c.out; ++o) {
      out[pixel * c.out + o] = bias == nullptr ? 0.0F : bias[o];
    }
  }
  for_each_tap(c, [&](std::int64_t out_pixel, std::int64_t in_pixel, std::int64_t tap) {
    float* const to = out + out_pixel * c.out;
    for (std::int64_t i = 0; i < c.in; ++i) {
      const float value = in.data()[in_pixel * c.in + i];
      const float* const row = weights.data() + (tap * c.in + i) * c.out;
      for (std::int64_t o = 0; o < c.out; ++o) to[o] += value * row[o];
    }
  });
}

void Reference::conv2d_backward_data(const Conv2dShape& c, const float* weight, const Tensor& dy,
                                     const Tensor& dx) {
  const Operand out(precision_, dy.data(), dy.count());
  const Operand weights(precision_, weight, c.kernel * c.kernel * c.in * c.out);
  std::fill_n(dx.data(), dx.count(), 0.0F);
  for_each_tap(c, [&](std::int64_t out_pixel, std::int64_t in_pixel, std::int64_t tap) {
    const float* const from = out.data() + out_pixel * c.out;
    for (std::int64_t i = 0; i < c.in; ++i) {
      const float* const row = weights.data() + (tap * c.in + i) * c.out;
      float sum = 0;
      for (std::int64_t o = 0; o < c.out; ++o) sum += from[o] * row[o];
      dx.data()[in_pixel * c.in + i] += sum;
    }
  });
}

void Reference::conv2d_backward_weight(const Conv2dShape& c, const Tensor& x, const Tensor& dy,
                                       float* weight_gradient, float* bias_gradient) {
  const Operand in(precision_, x.data(), x.count());
  const Operand out(precision_, dy.data(), dy.count());
  std::fill_n(weight_gradient, c.kernel * c.kernel * c.in * c.out, 0.0F);
  for_each_tap(c, [&](std::int64_t out_pixel, std::int64_t in_pixel, std::int64_t tap) {
    const float* const from = out.data() + out_pixel * c.out;
    for (std::int64_t i = 0; i < c.in; ++i) {
      const float value = in.data()[in_pixel * c.in + i];
      float* const row = weight_gradient + (tap * c.in + i) * c.out;
      for (std::int64_t o = 0; o < c.out; ++o) row[o] += value * from[o];
    }
  });
  if (bias_gradient == nullptr) return;
  std::fill_n(bias_gradient, c.out, 0.0F);
  for (std::int64_t k = 0; k < dy.count(); ++k) bias_gradient[k % c.out] += dy.data()[k];
}

}  // namespace kolo::tensor
