// The reduction kernels by vector width: one table per instruction set, chosen once by the machine
// that runs them.
#pragma once

#include "collectives/element.h"

namespace kolo::reduce {

struct Kernels {
  const char* name;  // the instruction set
  ReduceKernel (*reduce)(ElementType, ReduceOp);
  ScaleKernel (*scale)(ElementType);
  MultiplyKernel (*multiply)(ElementType);
};

// Runs on any machine that this build is for.
const Kernels& baseline();

// Null where the compiler or the processor lacks it.
const Kernels* avx2();
const Kernels* avx512();

// The widest that this processor has.
const Kernels& best();

}  // namespace kolo::reduce
