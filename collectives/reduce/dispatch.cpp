// Choice of the kernels for this processor.
#include "collectives/reduce/kernels.h"

namespace kolo::inline v0::reduce {

namespace {

const Kernels& find_best() {
  if (const Kernels* widest = avx512()) return *widest;
  if (const Kernels* wide = avx2()) return *wide;
  return baseline();
}

}  // namespace

// Detected once, as this is called for every operation. In a virtual machine, cpuid traps to the
// hypervisor and takes some microseconds.
const Kernels& best() {
  static const Kernels& found = find_best();
  return found;
}

}  // namespace kolo::inline v0::reduce
