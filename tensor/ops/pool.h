#pragma once

#include "tensor/autograd.h"

namespace kolo::tensor {

// Maximum over kernel x kernel windows; padding counts as minus infinity. N, H, W, C -> N, H', W',
// C. The gradient goes to the first maximum of a window in row order, as torch does.
Value max_pool2d(Tape& tape, const Value& x, std::int64_t kernel, std::int64_t stride,
                 std::int64_t padding);

// Mean over H and W: N, H, W, C -> N, C.
Value global_average_pool(Tape& tape, const Value& x);

// N, H, W, C -> N, C * H * W in torch's order (channel outermost), so that the columns of a linear
// layer have the same meaning as in torch.
Value flatten(Tape& tape, const Value& x);

}  // namespace kolo::tensor
