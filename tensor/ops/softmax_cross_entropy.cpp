#include "tensor/ops/softmax_cross_entropy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace kolo::tensor {

namespace {

// dlogits = (softmax - one at the label) / divisor. Forward computes it, where it costs almost
// nothing.
struct LossNode : Node {
  Value logits;
  Tensor gradient;

  void backward(Tape&) override { logits->gradients.push_back(gradient); }
};

// The target of one sample: `own` for its label, and `other` for each other class.
struct Target {
  std::int32_t label;
  double own;
  double other;
};

// Returns the loss of one sample, not divided, and writes its gradient. Subtracts the largest logit
// first, to avoid overflow.
double sample_loss(const float* logits, std::int64_t classes, const Target& target, double divisor,
                   float* gradient) {
  const float largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c)
    sum += std::exp(static_cast<double>(logits[c] - largest));
  if (gradient != nullptr) {
    for (std::int64_t c = 0; c < classes; ++c) {
      const double p = std::exp(static_cast<double>(logits[c] - largest)) / sum;
      gradient[c] =
          static_cast<float>((p - (c == target.label ? target.own : target.other)) / divisor);
    }
  }
  const double label = static_cast<double>(logits[target.label] - largest);
  if (target.other == 0) return std::log(sum) - label;
  double all = 0;
  for (std::int64_t c = 0; c < classes; ++c) all += static_cast<double>(logits[c] - largest);
  return std::log(sum) - (target.own - target.other) * label - target.other * all;
}

void check(const Shape& shape, std::span<const std::int32_t> labels, double divisor,
           double smoothing) {
  if (shape.rank() != 2 || shape[0] != static_cast<std::int64_t>(labels.size())) {
    throw std::invalid_argument(
        fmt::format("softmax_cross_entropy: {} labels need logits of shape {} x classes, got {}",
                    labels.size(), labels.size(), shape.text()));
  }
  if (!(divisor > 0)) {
    throw std::invalid_argument(
        fmt::format("softmax_cross_entropy: the divisor must be positive, not {}", divisor));
  }
  if (!(smoothing >= 0 && smoothing < 1)) {
    throw std::invalid_argument(fmt::format(
        "softmax_cross_entropy: the smoothing must be from 0 to below 1, not {}", smoothing));
  }
  for (const std::int32_t label : labels) {
    if (label >= shape[1]) {
      throw std::invalid_argument(fmt::format(
          "softmax_cross_entropy: label {} with logits for {} classes", label, shape[1]));
    }
  }
}

}  // namespace

Outcome softmax_cross_entropy(Tape& tape, const Value& logits, std::span<const std::int32_t> labels,
                              double divisor, double smoothing) {
  const Shape& shape = logits->data.shape();
  check(shape, labels, divisor, smoothing);
  if (tape.is_dry()) return {};
  auto node = std::make_unique<LossNode>();
  if (tape.is_recording()) node->gradient = Tensor(tape.pool(), shape);
  Outcome outcome;
  const std::int64_t classes = shape[1];
  const double other = smoothing / static_cast<double>(classes);
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    const float* const row = logits->data.data() + n * classes;
    float* const gradient = tape.is_recording() ? node->gradient.data() + n * classes : nullptr;
    const std::int32_t label = labels[static_cast<std::size_t>(n)];
    if (label < 0) {
      if (gradient != nullptr) std::fill_n(gradient, classes, 0.0F);
      continue;
    }
    const Target target{label, 1 - smoothing + other, other};
    outcome.loss += sample_loss(row, classes, target, divisor, gradient);
    outcome.correct += std::max_element(row, row + classes) - row == label ? 1 : 0;
    outcome.samples += 1;
  }
  outcome.loss /= divisor;
  node->logits = logits;
  tape.record(std::move(node), {"softmax_cross_entropy"});
  return outcome;
}

}  // namespace kolo::tensor
