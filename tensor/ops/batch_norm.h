// Batch normalisation, fused with the operations that follow it in ResNet: addition of the residual
// and ReLU.
#pragma once

#include "tensor/autograd.h"

namespace kolo::tensor {

struct BatchNormParameters {
  ParameterId weight, bias;
  BufferId running_mean, running_var, batches;
};

// y = normalised(x) * weight + bias, then + residual (may be null), then max(., 0) if `has_relu`.
// Training uses the statistics of this batch over N, H, W, and updates the running ones with
// momentum 0.1 (unbiased variance, as torch does). Evaluation uses the running ones. eps is 1e-5.
Value batch_norm(Tape& tape, const Value& x, const BatchNormParameters& parameters,
                 const Value& residual, bool has_relu);

}  // namespace kolo::tensor
