// Which kernels this processor can run.
#include "collectives/reduce/kernels.h"

namespace kolo::reduce {

const Kernels& best() {
  if (const Kernels* widest = avx512()) return *widest;
  if (const Kernels* wide = avx2()) return *wide;
  return baseline();
}

}  // namespace kolo::reduce
