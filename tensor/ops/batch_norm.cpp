#include "tensor/ops/batch_norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tensor/kernels/kernels.h"

// With z = x^ * weight + bias + residual, x^ = (x - mean) / deviation, y = relu(z), m values per
// channel:
//   dz = dy where y > 0;  dresidual = dz;  dbias = sum dz;  dweight = sum dz x^
//   dx = weight / deviation * (dz - dbias / m - x^ * dweight / m)
// Backward needs x, y (its zeros are the mask of the ReLU) and two numbers per channel. (Ioffe,
// Szegedy 2015.)
//
// Over several replicas: forward replaces the statistics by those of all replicas, and computes y
// again. Backward corrects dx by the sums of all replicas; dweight and dbias stay those of this
// replica. Backends need no change.

namespace kolo::tensor {

namespace {

constexpr float kEpsilon = 1e-5F;
constexpr float kMomentum = 0.1F;

// Three numbers per channel, side by side.
struct Statistics {
  Tensor memory;
  float* mean;
  float* inverse_deviation;
  float* variance;
  double values = 0;  // per channel; of all replicas

  Statistics(Pool& pool, std::int64_t channels)
      : memory(pool, {3, channels}),
        mean(memory.data()),
        inverse_deviation(mean + channels),
        variance(mean + 2 * channels) {}
};

// Replaces the statistics of this replica by those of all.
void synchronize(Tape& tape, Statistics& statistics, std::int64_t count) {
  const auto channels = static_cast<std::size_t>(count);
  std::vector<double> sums(2 * channels + 1);
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = statistics.mean[c];
    sums[c] = statistics.values * mean;
    sums[channels + c] = statistics.values * (double{statistics.variance[c]} + mean * mean);
  }
  sums.back() = statistics.values;
  tape.sum_over_replicas(sums);
  statistics.values = sums.back();
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = sums[c] / sums.back();
    const double variance = std::max(0.0, sums[channels + c] / sums.back() - mean * mean);
    statistics.mean[c] = static_cast<float>(mean);
    statistics.variance[c] = static_cast<float>(variance);
    statistics.inverse_deviation[c] =
        static_cast<float>(1 / std::sqrt(variance + double{kEpsilon}));
  }
}

// `dx` was computed with dbias / m and dweight / m of this replica. Replaces them by those of all.
void correct_gradient(Tape& tape, const BatchNormParameters& ids, const Statistics& statistics,
                      const Tensor& x, const Tensor& dx) {
  const auto channels = static_cast<std::size_t>(x.shape()[3]);
  const auto rows = static_cast<std::size_t>(x.count()) / channels;
  const float* const weight = tape.parameters().value(ids.weight);
  const float* const dweight = tape.parameters().gradient(ids.weight);
  const float* const dbias = tape.parameters().gradient(ids.bias);
  std::vector<double> sums(dbias, dbias + channels);
  sums.insert(sums.end(), dweight, dweight + channels);
  tape.sum_over_replicas(sums);
  std::vector<float> shift(channels), slope(channels);
  const auto change = [&](double mine, double all) {
    return mine / static_cast<double>(rows) - all / statistics.values;
  };
  for (std::size_t c = 0; c < channels; ++c) {
    const double inverse = statistics.inverse_deviation[c];
    const double factor = double{weight[c]} * inverse;
    const double steep = factor * inverse * change(dweight[c], sums[channels + c]);
    slope[c] = static_cast<float>(steep);
    shift[c] =
        static_cast<float>(factor * change(dbias[c], sums[c]) - steep * double{statistics.mean[c]});
  }
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const from = x.data() + row * channels;
    float* const to = dx.data() + row * channels;
    for (std::size_t c = 0; c < channels; ++c) to[c] += shift[c] + slope[c] * from[c];
  }
}

struct BatchNormNode : Node {
  BatchNormParameters ids;
  bool has_relu;
  Value x, residual, y;
  Statistics statistics;

  BatchNormNode(Pool& pool, std::int64_t channels) : statistics(pool, channels) {}

  void backward(Tape& tape) override {
    std::vector<Tensor> dys = std::move(y->gradients);
    y->gradients.clear();
    if (dys.size() > 2) {
      y->gradients = std::move(dys);
      dys = {tape.take_gradient(*y)};
    }
    // Overwrite the memory of the first gradient if no other tensor shares it.
    const Tensor spare =
        dys.front().is_sole_owner() ? dys.front() : Tensor(tape.pool(), x->data.shape());
    const bool has_residual = residual != nullptr && residual->needs_gradient;
    const Tensor dx = has_residual ? Tensor(tape.pool(), x->data.shape()) : spare;
    Parameters& p = tape.parameters();
    const BatchNormBackward how{p.value(ids.weight),
                                has_relu,
                                statistics.mean,
                                statistics.inverse_deviation,
                                has_residual ? spare : Tensor(),
                                p.gradient(ids.weight),
                                p.gradient(ids.bias)};
    tape.backend().batch_norm_backward(x->data, y->data, dys, how, dx);
    if (tape.has_sum_over_replicas()) correct_gradient(tape, ids, statistics, x->data, dx);
    dys.clear();
    tape.finished(ids.bias);
    tape.finished(ids.weight);
    if (x->needs_gradient) x->gradients.push_back(dx);
    if (has_residual) residual->gradients.push_back(spare);
  }
};

void check(Tape& tape, const Value& x, const BatchNormParameters& ids, const Value& residual) {
  const Shape& shape = x->data.shape();
  if (shape.rank() != 4) {
    throw std::invalid_argument(
        fmt::format("batch_norm: the input must be N x H x W x C, got {}", shape.text()));
  }
  const auto list = tape.parameters().list();
  require_shape("batch_norm: weight", {shape[3]}, list[static_cast<std::size_t>(ids.weight)].shape);
  if (residual != nullptr) require_shape("batch_norm: residual", shape, residual->data.shape());
}

// As PyTorch: with one value the normalised value would be 0, whatever the input.
void require_several_values(Tape& tape, const BatchNormParameters& ids, const Shape& x,
                            double values) {
  if (!tape.is_recording() || values > 1) return;
  throw std::invalid_argument(fmt::format(
      "batch_norm: {}: more than one value per channel is needed in training, got an input of {}; "
      "take a larger batch",
      tape.parameters().list()[static_cast<std::size_t>(ids.weight)].name, x.text()));
}

void move_running(Parameters& p, const BatchNormParameters& ids, const Statistics& batch,
                  const Shape& x) {
  const auto values = static_cast<float>(batch.values);
  const float unbiased = values / (values - 1);
  float* const mean = p.buffer(ids.running_mean);
  float* const variance = p.buffer(ids.running_var);
  for (std::int64_t c = 0; c < x[3]; ++c) {
    mean[c] += kMomentum * (batch.mean[c] - mean[c]);
    variance[c] += kMomentum * (unbiased * batch.variance[c] - variance[c]);
  }
  *p.buffer(ids.batches) += 1.0F;
}

void load_running(Parameters& p, const BatchNormParameters& ids, const Statistics& to,
                  std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) {
    to.mean[c] = p.buffer(ids.running_mean)[c];
    to.inverse_deviation[c] = 1.0F / std::sqrt(p.buffer(ids.running_var)[c] + kEpsilon);
  }
}

}  // namespace

Value batch_norm(Tape& tape, const Value& x, const BatchNormParameters& parameters,
                 const Value& residual, bool has_relu) {
  check(tape, x, parameters, residual);
  tape.use(parameters.weight);
  tape.use(parameters.bias);
  const Shape& shape = x->data.shape();
  const Value y = tape.make(shape);
  tape.note_normalised(shape[3], shape.count() / shape[3]);
  if (tape.is_dry()) return y;
  Parameters& p = tape.parameters();
  auto node = std::make_unique<BatchNormNode>(tape.pool(), shape[3]);
  Statistics& statistics = node->statistics;
  statistics.values = static_cast<double>(shape.count() / shape[3]);
  if (!tape.has_sum_over_replicas())
    require_several_values(tape, parameters, shape, statistics.values);
  const BatchNormForward how{p.value(parameters.weight),
                             p.value(parameters.bias),
                             residual == nullptr ? Tensor() : residual->data,
                             has_relu,
                             kEpsilon,
                             statistics.mean,
                             statistics.inverse_deviation,
                             statistics.variance};
  if (!tape.is_recording()) {
    load_running(p, parameters, statistics, shape[3]);
    tape.backend().batch_norm_evaluation(x->data, how, y->data);
    return y;
  }
  tape.backend().batch_norm_training(x->data, how, y->data);
  if (tape.has_sum_over_replicas()) {
    synchronize(tape, statistics, shape[3]);
    require_several_values(tape, parameters, shape, statistics.values);
    tape.backend().batch_norm_evaluation(x->data, how, y->data);
  }
  move_running(p, parameters, statistics, shape);
  node->ids = parameters;
  node->has_relu = has_relu;
  node->x = x;
  node->residual = residual;
  node->y = y;
  tape.record(std::move(node), {"batch_norm", parameters.weight});
  return y;
}

}  // namespace kolo::tensor
