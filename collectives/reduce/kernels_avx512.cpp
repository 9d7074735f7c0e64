// The reduction kernels, compiled for x86-64 with AVX-512 (F, BW, DQ, VL); CMakeLists.txt sets the
// flags.
#include "collectives/reduce/kernels.inc"

namespace kolo::inline v0::reduce {

const Kernels* avx512_kernels() {
  static constexpr Kernels kKernels{"avx512",      find_reduce, find_scale,
                                    find_multiply, find_narrow, find_widen};
  return &kKernels;
}

}  // namespace kolo::inline v0::reduce
