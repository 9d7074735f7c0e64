// The kernels by type and operation, as the .cu files give them: one file for a kind of types, so
// that they compile side by side.
#pragma once

#include "collectives/reduce/device/kernels.h"

namespace kolo::device {

struct Kernel {
  // Null where the operation has no meaning for the type.
  void (*launch)(const Pass& pass, Stream stream, int divisor, double factor) = nullptr;
  const void* function = nullptr;  // what CUDA knows it by
};

struct Table {
  // `reduce(kScaledSum)` multiplies local first.
  Kernel (*reduce)(ElementType, ReduceOp);
  // By the divisor where it is above 1, otherwise by the factor, of floats only.
  Kernel (*scale)(ElementType);
};

extern const Table kFloatKernels;     // float32, float64
extern const Table kFloat16Kernels;   // float16, bfloat16
extern const Table kFloat8Kernels;    // float8_e4m3, float8_e5m2
extern const Table kShortIntKernels;  // of 8 and 16 bits
extern const Table kIntKernels;       // of 32 and 64 bits

}  // namespace kolo::device
