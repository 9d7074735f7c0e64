// Tables of kernels by type and operation. Each .cu file defines the table of one kind of types, so
// that the files compile in parallel.
#pragma once

#include "collectives/reduce/device/kernels.h"

namespace kolo::inline v0::device {

struct Kernel {
  // Null if the operation is not defined for the type.
  void (*launch)(const Pass& pass, Stream stream, int divisor, double factor) = nullptr;
  const void* function = nullptr;  // CUDA's handle of the kernel
};

struct Table {
  // `reduce(kScaledSum)` multiplies `local` first.
  Kernel (*reduce)(ElementType, ReduceOp);
  // Divides by the divisor if it is above 1, otherwise multiplies by the factor (floats only).
  Kernel (*scale)(ElementType);
};

extern const Table kFloatKernels;     // float32, float64
extern const Table kFloat16Kernels;   // float16, bfloat16
extern const Table kFloat8Kernels;    // float8_e4m3, float8_e5m2
extern const Table kShortIntKernels;  // 8 and 16 bits
extern const Table kIntKernels;       // 32 and 64 bits

}  // namespace kolo::inline v0::device
