// Reduction kernels by vector width: one table per instruction set, selected once for the machine.
#pragma once

#include "collectives/element.h"

namespace kolo::inline v0::reduce {

struct Kernels {
  const char* name;  // the instruction set
  ReduceKernel (*reduce)(ElementType, ReduceOp);
  ScaleKernel (*scale)(ElementType);
  MultiplyKernel (*multiply)(ElementType);
  ConvertKernel (*narrow)(ElementType);
  ConvertKernel (*widen)(ElementType);
};

// Kernels for every machine of this build's architecture.
const Kernels& baseline();

// Null if the compiler or the processor does not support the instruction set.
const Kernels* avx2();
const Kernels* avx512();

// The widest kernels for this processor.
const Kernels& best();

}  // namespace kolo::inline v0::reduce
