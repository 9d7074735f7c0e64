#pragma once

#include <cstdint>
#include <span>

#include "tensor/autograd.h"

namespace kolo::tensor {

// Result of a batch: sums over its real samples.
struct Outcome {
  double loss = 0;           // sum of -log p(label), divided by the divisor
  std::int64_t correct = 0;  // samples whose largest logit (the first, if equal) is the label's
  std::int64_t samples = 0;  // real samples: labels that are not negative
};

// logits: N, classes. A negative label marks padding: no loss, no gradient. The loss is the sum
// over real samples, divided by `divisor`. With the global batch as divisor, the sum over ranks is
// the mean over all samples. This is the last node of the tape. `labels` is borrowed for this call.
// `smoothing` from 0 to below 1: this part of the target is spread evenly over all classes, as in
// torch.nn.CrossEntropyLoss(label_smoothing). Throws std::invalid_argument if a label is not below
// the number of classes.
Outcome softmax_cross_entropy(Tape& tape, const Value& logits, std::span<const std::int32_t> labels,
                              double divisor, double smoothing = 0);

}  // namespace kolo::tensor
