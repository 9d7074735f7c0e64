// CPU features of x86-64. Compiled without special flags, since it runs before the choice of the
// kernels.
#include <cpuid.h>

#include "collectives/reduce/kernels.h"

namespace kolo::inline v0::reduce {

const Kernels* avx2_kernels();
const Kernels* avx512_kernels();

namespace {

// Older compilers do not know the name "f16c" in __builtin_cpu_supports.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

const Kernels* avx2() {
  return __builtin_cpu_supports("avx2") && has_f16c() ? avx2_kernels() : nullptr;
}

const Kernels* avx512() {
  const bool has_it = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_it ? avx512_kernels() : nullptr;
}

}  // namespace kolo::inline v0::reduce
