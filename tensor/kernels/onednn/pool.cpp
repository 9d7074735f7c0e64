// Pooling: channels are innermost, so a window is a handful of vector loops over rows. Images are
// shared out among the threads.

#include <algorithm>
#include <limits>

#include "tensor/kernels/onednn/onednn.h"
#include "tensor/kernels/onednn/parallel.h"

namespace kolo::tensor::onednn {

namespace {

// Calls visit(output pixel, input pixel, tap) for the places of all windows of image n that lie
// inside, window by window.
template <typename Visit>
void for_each_place(const PoolShape& pool, const Shape& in, const Shape& out, std::int64_t n,
                    const Visit& visit) {
  for (std::int64_t pixel = 0; pixel < out[1] * out[2]; ++pixel) {
    const std::int64_t top = pixel / out[2] * pool.stride - pool.padding;
    const std::int64_t left = pixel % out[2] * pool.stride - pool.padding;
    for (std::int64_t tap = 0; tap < pool.kernel * pool.kernel; ++tap) {
      const std::int64_t h = top + tap / pool.kernel, w = left + tap % pool.kernel;
      if (h < 0 || h >= in[1] || w < 0 || w >= in[2]) continue;
      visit(n * out[1] * out[2] + pixel, (n * in[1] + h) * in[2] + w,
            static_cast<std::uint8_t>(tap));
    }
  }
}

}  // namespace

void Onednn::max_pool_forward(const PoolShape& pool, const Tensor& x, const Tensor& y,
                              std::uint8_t* winners) {
  const std::int64_t channels = x.shape()[3], images = x.shape()[0];
  parallel_ranges(threads_, images, x.count() / images, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t each = y.count() / images;
    // Below every number, so that the first place inside the image wins; only NaN loses to it.
    std::fill_n(y.data() + begin * each, (end - begin) * each,
                -std::numeric_limits<float>::infinity());
    std::fill_n(winners + begin * each, (end - begin) * each, std::uint8_t{0});
    for (std::int64_t n = begin; n < end; ++n) {
      for_each_place(pool, x.shape(), y.shape(), n,
                     [&](std::int64_t out, std::int64_t in, std::uint8_t tap) {
                       loops_.max_update(channels, x.data() + in * channels, tap,
                                         y.data() + out * channels, winners + out * channels);
                     });
    }
  });
}

void Onednn::max_pool_backward(const PoolShape& pool, const Tensor& dy, const std::uint8_t* winners,
                               const Tensor& dx) {
  const std::int64_t channels = dx.shape()[3], images = dx.shape()[0];
  parallel_ranges(threads_, images, dx.count() / images, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t each = dx.count() / images;
    std::fill_n(dx.data() + begin * each, (end - begin) * each, 0.0F);
    for (std::int64_t n = begin; n < end; ++n) {
      for_each_place(pool, dx.shape(), dy.shape(), n,
                     [&](std::int64_t out, std::int64_t in, std::uint8_t tap) {
                       loops_.max_gradient(channels, dy.data() + out * channels,
                                           winners + out * channels, tap,
                                           dx.data() + in * channels);
                     });
    }
  });
}

void Onednn::average_pool_forward(const Tensor& x, const Tensor& y) {
  const std::int64_t channels = x.shape()[3], pixels = x.shape()[1] * x.shape()[2];
  std::fill_n(y.data(), y.count(), 0.0F);
  for (std::int64_t n = 0; n < x.shape()[0]; ++n) {
    float* const to = y.data() + n * channels;
    loops_.column_sums({pixels, channels}, x.data() + n * pixels * channels, to);
    for (std::int64_t c = 0; c < channels; ++c) to[c] /= static_cast<float>(pixels);
  }
}

void Onednn::average_pool_backward(const Tensor& dy, const Tensor& dx) {
  const std::int64_t channels = dx.shape()[3], pixels = dx.shape()[1] * dx.shape()[2];
  for (std::int64_t n = 0; n < dx.shape()[0]; ++n) {
    const float* const from = dy.data() + n * channels;
    float* const first = dx.data() + n * pixels * channels;
    for (std::int64_t c = 0; c < channels; ++c) first[c] = from[c] / static_cast<float>(pixels);
    for (std::int64_t k = 1; k < pixels; ++k) std::copy_n(first, channels, first + k * channels);
  }
}

}  // namespace kolo::tensor::onednn
