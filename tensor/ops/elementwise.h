#pragma once

#include "tensor/autograd.h"

namespace kolo::tensor {

// max(x, 0), in place if no other tensor shares the memory. So x must not be used after this call.
Value relu(Tape& tape, const Value& x);

// a + b of equal shapes; then max(., 0) if `has_relu`.
Value add(Tape& tape, const Value& a, const Value& b, bool has_relu);

}  // namespace kolo::tensor
