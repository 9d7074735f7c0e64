// The reduction kernels, compiled for every processor of this architecture; CMakeLists.txt sets the
// flags.
#include "collectives/reduce/kernels.inc"

namespace kolo::inline v0::reduce {

const Kernels& baseline() {
  static constexpr Kernels kKernels{"baseline",    find_reduce, find_scale,
                                    find_multiply, find_narrow, find_widen};
  return kKernels;
}

}  // namespace kolo::inline v0::reduce
