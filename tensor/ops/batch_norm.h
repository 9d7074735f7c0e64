// Batch normalisation, with what ResNet puts behind it (add the residual, ReLU) in the same node.
#pragma once

#include "tensor/autograd.h"

namespace kolo::tensor {

struct BatchNormParameters {
  ParameterId weight, bias;
  BufferId running_mean, running_var, batches;
};

// y = normalised(x) * weight + bias, then + residual (may be null), then max(., 0) if `has_relu`.
// Training: statistics of this batch over N, H, W; running ones move by momentum 0.1 (variance
// unbiased, as torch does). Evaluation: running statistics. eps is 1e-5.
Value batch_norm(Tape& tape, const Value& x, const BatchNormParameters& parameters,
                 const Value& residual, bool has_relu);

}  // namespace kolo::tensor
