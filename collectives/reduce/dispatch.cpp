// Which kernels this processor can run.
#include "collectives/reduce/kernels.h"

namespace kolo::reduce {

namespace {

const Kernels& find_best() {
  if (const Kernels* widest = avx512()) return *widest;
  if (const Kernels* wide = avx2()) return *wide;
  return baseline();
}

}  // namespace

// Found once: a processor is asked by an instruction (cpuid) that a virtual machine leaves its
// hypervisor for, some microseconds, and this is called for every operation.
const Kernels& best() {
  static const Kernels& found = find_best();
  return found;
}

}  // namespace kolo::reduce
