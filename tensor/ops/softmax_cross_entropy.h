#pragma once

#include <cstdint>
#include <span>

#include "tensor/autograd.h"

namespace kolo::tensor {

// What a batch taught: sums over its real samples.
struct Outcome {
  double loss = 0;           // sum of -log p(label), divided by the divisor
  std::int64_t correct = 0;  // samples whose largest logit is the label's (the first of equals)
  std::int64_t samples = 0;  // real samples: labels that are not negative
};

// logits: N, classes. A negative label marks padding: no loss, no gradient. The loss is the sum
// over real samples divided by `divisor`: the global batch, so that sums over ranks are the mean
// over all. It is the tape's last node. `labels` is borrowed for this call. Throws
// std::invalid_argument for a label beyond the classes.
Outcome softmax_cross_entropy(Tape& tape, const Value& logits, std::span<const std::int32_t> labels,
                              double divisor);

}  // namespace kolo::tensor
