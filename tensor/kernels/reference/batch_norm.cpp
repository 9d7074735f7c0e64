// Batch normalisation; the formulas are in ops/batch_norm.cpp. Sums are in double, so the
// statistics are almost exact.

#include <algorithm>
#include <cmath>
#include <vector>

#include "tensor/kernels/reference/reference.h"

namespace kolo::tensor {

namespace {

// Computes y from x and the statistics in `how`.
void normalize(const Tensor& x, const BatchNormForward& how, const Tensor& y) {
  const std::int64_t channels = x.shape()[3];
  for (std::int64_t k = 0; k < x.count(); ++k) {
    const std::int64_t c = k % channels;
    float z = (x.data()[k] - how.mean[c]) * how.inverse_deviation[c] * how.weight[c] + how.bias[c];
    if (!how.residual.is_empty()) z += how.residual.data()[k];
    y.data()[k] = how.has_relu ? std::max(z, 0.0F) : z;
  }
}

}  // namespace

void Reference::batch_norm_training(const Tensor& x, const BatchNormForward& how, const Tensor& y) {
  const std::int64_t channels = x.shape()[3];
  const auto values = static_cast<double>(x.count() / channels);
  std::vector<double> mean(static_cast<std::size_t>(channels)), variance(mean);
  for (std::int64_t k = 0; k < x.count(); ++k) {
    mean[static_cast<std::size_t>(k % channels)] += static_cast<double>(x.data()[k]) / values;
  }
  for (std::int64_t k = 0; k < x.count(); ++k) {
    const auto c = static_cast<std::size_t>(k % channels);
    const double distance = static_cast<double>(x.data()[k]) - mean[c];
    variance[c] += distance * distance / values;
  }
  for (std::size_t c = 0; c < mean.size(); ++c) {
    how.mean[c] = static_cast<float>(mean[c]);
    how.variance[c] = static_cast<float>(variance[c]);
    how.inverse_deviation[c] =
        static_cast<float>(1 / std::sqrt(variance[c] + static_cast<double>(how.epsilon)));
  }
  normalize(x, how, y);
}

void Reference::batch_norm_evaluation(const Tensor& x, const BatchNormForward& how,
                                      const Tensor& y) {
  normalize(x, how, y);
}

void Reference::batch_norm_backward(const Tensor& x, const Tensor& y, std::span<const Tensor> dys,
                                    const BatchNormBackward& how, const Tensor& dx) {
  const std::int64_t channels = x.shape()[3];
  const auto dz = [&](std::int64_t k) {
    if (how.has_relu && !(y.data()[k] > 0)) return 0.0F;
    return dys.size() == 1 ? dys[0].data()[k] : dys[0].data()[k] + dys[1].data()[k];
  };
  const auto normalized = [&](std::int64_t k) {
    return (x.data()[k] - how.mean[k % channels]) * how.inverse_deviation[k % channels];
  };
  std::vector<double> sum(static_cast<std::size_t>(channels)), product(sum);
  for (std::int64_t k = 0; k < x.count(); ++k) {
    const auto c = static_cast<std::size_t>(k % channels);
    sum[c] += static_cast<double>(dz(k));
    product[c] += static_cast<double>(dz(k)) * static_cast<double>(normalized(k));
  }
  for (std::size_t c = 0; c < sum.size(); ++c) {
    how.bias_gradient[c] = static_cast<float>(sum[c]);
    how.weight_gradient[c] = static_cast<float>(product[c]);
  }
  const auto values = static_cast<float>(x.count() / channels);
  for (std::int64_t k = 0; k < x.count(); ++k) {
    const std::int64_t c = k % channels;
    const float gradient = dz(k);
    const float mean_part = how.bias_gradient[c] / values;
    const float slope_part = normalized(k) * how.weight_gradient[c] / values;
    // Write only after the reads above: dx and the residual's gradient may share memory with a dy.
    if (!how.residual_gradient.is_empty()) how.residual_gradient.data()[k] = gradient;
    dx.data()[k] = how.weight[c] * how.inverse_deviation[c] * (gradient - mean_part - slope_part);
  }
}

}  // namespace kolo::tensor
