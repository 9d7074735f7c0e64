// Which kernels this processor can run. Compiled without any special flag: it decides before they
// are called.
#include "collectives/reduce/kernels.h"

namespace kolo::reduce {

#if defined(KOLO_X86_KERNELS)

const Kernels* avx2_kernels();
const Kernels* avx512_kernels();

const Kernels* avx2() { return __builtin_cpu_supports("avx2") ? avx2_kernels() : nullptr; }

const Kernels* avx512() {
  const bool has_it = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_it ? avx512_kernels() : nullptr;
}

#else

const Kernels* avx2() { return nullptr; }
const Kernels* avx512() { return nullptr; }

#endif

const Kernels& best() {
  if (const Kernels* widest = avx512()) return *widest;
  if (const Kernels* wide = avx2()) return *wide;
  return baseline();
}

}  // namespace kolo::reduce
