// Selects the loops that this x86-64 processor can run. Compiled without vector flags, because it
// runs before the selection.
#include "tensor/kernels/onednn/loops.h"

namespace kolo::tensor::onednn {

const Loops& avx2_loops();
const Loops& avx512_loops();

const Loops& best_loops() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return avx512_loops();
  }
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2_loops()
                                                                         : baseline_loops();
}

}  // namespace kolo::tensor::onednn
