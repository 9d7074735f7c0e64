// Pooling, window by window.

#include <algorithm>
#include <limits>

#include "tensor/kernels/reference/reference.h"

namespace kolo::tensor {

namespace {

// One window: output (n, p, q, c).
struct Window {
  std::int64_t n, p, q, c;
};

// Calls visit(window, offset of its output).
template <typename Visit>
void for_each_window(const Tensor& y, Visit visit) {
  const Shape& s = y.shape();
  for (std::int64_t n = 0; n < s[0]; ++n) {
    for (std::int64_t p = 0; p < s[1]; ++p) {
      for (std::int64_t q = 0; q < s[2]; ++q) {
        for (std::int64_t c = 0; c < s[3]; ++c) {
          visit(Window{n, p, q, c}, ((n * s[1] + p) * s[2] + q) * s[3] + c);
        }
      }
    }
  }
}

// Offset of the input at place `tap` of a window, or -1 in the padding.
std::int64_t input_offset(const PoolShape& pool, const Tensor& x, const Window& at,
                          std::int64_t tap) {
  const std::int64_t h = at.p * pool.stride - pool.padding + tap / pool.kernel;
  const std::int64_t w = at.q * pool.stride - pool.padding + tap % pool.kernel;
  if (h < 0 || h >= x.shape()[1] || w < 0 || w >= x.shape()[2]) return -1;
  return ((at.n * x.shape()[1] + h) * x.shape()[2] + w) * x.shape()[3] + at.c;
}

}  // namespace

void Reference::max_pool_forward(const PoolShape& pool, const Tensor& x, const Tensor& y,
                                 std::uint8_t* winners) {
  for_each_window(y, [&](const Window& at, std::int64_t out) {
    float largest = -std::numeric_limits<float>::infinity();
    std::int64_t winner = -1;
    for (std::int64_t tap = 0; tap < pool.kernel * pool.kernel; ++tap) {
      const std::int64_t in = input_offset(pool, x, at, tap);
      if (in < 0 || (winner >= 0 && !(x.data()[in] > largest))) continue;
      largest = x.data()[in];
      winner = tap;
    }
    y.data()[out] = largest;
    winners[out] = static_cast<std::uint8_t>(winner);
  });
}

void Reference::max_pool_backward(const PoolShape& pool, const Tensor& dy,
                                  const std::uint8_t* winners, const Tensor& dx) {
  std::fill_n(dx.data(), dx.count(), 0.0F);
  for_each_window(dy, [&](const Window& at, std::int64_t out) {
    dx.data()[input_offset(pool, dx, at, winners[out])] += dy.data()[out];
  });
}

void Reference::average_pool_forward(const Tensor& x, const Tensor& y) {
  const Shape& s = x.shape();
  std::fill_n(y.data(), y.count(), 0.0F);
  for_each_window(
      x, [&](const Window& at, std::int64_t in) { y.data()[at.n * s[3] + at.c] += x.data()[in]; });
  for (std::int64_t k = 0; k < y.count(); ++k) y.data()[k] /= static_cast<float>(s[1] * s[2]);
}

void Reference::average_pool_backward(const Tensor& dy, const Tensor& dx) {
  const Shape& s = dx.shape();
  for_each_window(dx, [&](const Window& at, std::int64_t in) {
    dx.data()[in] = dy.data()[at.n * s[3] + at.c] / static_cast<float>(s[1] * s[2]);
  });
}

}  // namespace kolo::tensor
