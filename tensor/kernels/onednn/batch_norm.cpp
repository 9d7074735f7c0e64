// Batch normalisation in two passes over memory each way; the formulas are in ops/batch_norm.cpp.
//
// Each thread sums its rows in floats, 256 rows at a time. The partial sums are added in double, in
// the order of the threads. So the result is accurate, and has the same bits every time.

#include <algorithm>
#include <cmath>
#include <vector>

#include "tensor/kernels/onednn/onednn.h"
#include "tensor/kernels/onednn/parallel.h"

namespace kolo::tensor::onednn {

namespace {

constexpr std::int64_t kRowsAtOnce = 256;

// Computes two sums per channel. `visit(first row, rows, first, second)` adds some rows to them.
template <typename Visit>
std::vector<double> summed(int threads, std::int64_t rows, std::int64_t channels,
                           const Visit& visit) {
  const int parts = rows * channels < 16384 ? 1 : threads;
  const auto width = static_cast<std::size_t>(2 * channels);
  std::vector<double> partial(static_cast<std::size_t>(parts) * width);
  parallel(parts, [&](int part) {
    double* const mine = partial.data() + static_cast<std::size_t>(part) * width;
    std::vector<float> sums(width);
    const std::int64_t end = part_begin(rows, part + 1, parts);
    for (std::int64_t row = part_begin(rows, part, parts); row < end; row += kRowsAtOnce) {
      std::fill(sums.begin(), sums.end(), 0.0F);
      visit(row, std::min(kRowsAtOnce, end - row), sums.data(), sums.data() + channels);
      for (std::size_t c = 0; c < width; ++c) mine[c] += static_cast<double>(sums[c]);
    }
  });
  for (int part = 1; part < parts; ++part) {
    const double* const theirs = partial.data() + static_cast<std::size_t>(part) * width;
    for (std::size_t c = 0; c < width; ++c) partial[c] += theirs[c];
  }
  partial.resize(width);
  return partial;
}

}  // namespace

void Onednn::normalize(const Tensor& x, const BatchNormForward& how, const Tensor& y) {
  const std::int64_t channels = x.shape()[3], rows = x.count() / channels;
  float* const scale = scratch(channels);
  for (std::int64_t c = 0; c < channels; ++c) scale[c] = how.weight[c] * how.inverse_deviation[c];
  const auto loop = how.has_relu ? loops_.normalize_relu : loops_.normalize;
  parallel_ranges(threads_, rows, channels, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * channels;
    loop({end - begin, channels},
         {x.data() + at, how.residual.is_empty() ? nullptr : how.residual.data() + at, how.mean,
          scale, how.bias, y.data() + at});
  });
}

void Onednn::batch_norm_training(const Tensor& x, const BatchNormForward& how, const Tensor& y) {
  const std::int64_t channels = x.shape()[3], rows = x.count() / channels;
  const float* const shift = x.data();  // close to the mean, which avoids cancellation
  const std::vector<double> sums =
      summed(threads_, rows, channels,
             [&](std::int64_t row, std::int64_t count, float* sum, float* square) {
               loops_.moments({count, channels}, x.data() + row * channels, shift, sum, square);
             });
  for (std::int64_t c = 0; c < channels; ++c) {
    const double mean = sums[static_cast<std::size_t>(c)] / static_cast<double>(rows);
    const double square = sums[static_cast<std::size_t>(c + channels)] / static_cast<double>(rows);
    const double variance = std::max(square - mean * mean, 0.0);
    how.mean[c] = static_cast<float>(mean + static_cast<double>(shift[c]));
    how.variance[c] = static_cast<float>(variance);
    how.inverse_deviation[c] =
        static_cast<float>(1 / std::sqrt(variance + static_cast<double>(how.epsilon)));
  }
  normalize(x, how, y);
}

void Onednn::batch_norm_evaluation(const Tensor& x, const BatchNormForward& how, const Tensor& y) {
  normalize(x, how, y);
}

void Onednn::batch_norm_backward(const Tensor& x, const Tensor& y, std::span<const Tensor> dys,
                                 const BatchNormBackward& how, const Tensor& dx) {
  const std::int64_t channels = x.shape()[3], rows = x.count() / channels;
  // The gradient at the input of the ReLU. It is an output if there is a residual; else dx
  // overwrites it.
  float* const dz = how.residual_gradient.is_empty() ? dx.data() : how.residual_gradient.data();
  const std::vector<double> sums =
      summed(threads_, rows, channels,
             [&](std::int64_t row, std::int64_t count, float* sum, float* product) {
               const std::int64_t at = row * channels;
               loops_.norm_sums({count, channels},
                                {x.data() + at, how.has_relu ? y.data() + at : nullptr,
                                 dys[0].data() + at, dys.size() > 1 ? dys[1].data() + at : nullptr,
                                 how.mean, dz + at, sum, product});
             });
  float* const scale = scratch(3 * channels);
  float* const slope = scale + channels;
  float* const offset = slope + channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double inverse = static_cast<double>(how.inverse_deviation[c]);
    const double sum = sums[static_cast<std::size_t>(c)];
    const double product = sums[static_cast<std::size_t>(c + channels)] * inverse;
    const double gain = static_cast<double>(how.weight[c]) * inverse;
    how.bias_gradient[c] = static_cast<float>(sum);
    how.weight_gradient[c] = static_cast<float>(product);
    scale[c] = static_cast<float>(gain);
    slope[c] = static_cast<float>(-gain * inverse * product / static_cast<double>(rows));
    offset[c] = static_cast<float>(-gain * sum / static_cast<double>(rows));
  }
  parallel_ranges(threads_, rows, channels, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * channels;
    loops_.norm_gradient({end - begin, channels},
                         {x.data() + at, dz + at, how.mean, scale, slope, offset, dx.data() + at});
  });
}

}  // namespace kolo::tensor::onednn
