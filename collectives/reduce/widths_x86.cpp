// The vector widths of x86-64. Compiled without any special flag: it decides before they are
// called.
#include "collectives/reduce/kernels.h"

namespace kolo::reduce {

const Kernels* avx2_kernels();
const Kernels* avx512_kernels();

const Kernels* avx2() { return __builtin_cpu_supports("avx2") ? avx2_kernels() : nullptr; }

const Kernels* avx512() {
  const bool has_it = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_it ? avx512_kernels() : nullptr;
}

}  // namespace kolo::reduce
