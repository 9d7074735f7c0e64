#pragma once

#include "tensor/autograd.h"

namespace kolo::tensor {

// x: N, in; weight: [out][in]; bias: [out]. Result: N, out.
Value linear(Tape& tape, const Value& x, ParameterId weight, ParameterId bias);

}  // namespace kolo::tensor
