// The reduction kernels, compiled for x86-64 with AVX2 and F16C; CMakeLists.txt sets the flags.
#include "collectives/reduce/kernels.inc"

namespace kolo::inline v0::reduce {

const Kernels* avx2_kernels() {
  static constexpr Kernels kKernels{"avx2",        find_reduce, find_scale,
                                    find_multiply, find_narrow, find_widen};
  return &kKernels;
}

}  // namespace kolo::inline v0::reduce
