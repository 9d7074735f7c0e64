// CPU features of processors other than x86-64: only the baseline kernels.
#include "collectives/reduce/kernels.h"

namespace kolo::inline v0::reduce {

const Kernels* avx2() { return nullptr; }
const Kernels* avx512() { return nullptr; }

}  // namespace kolo::inline v0::reduce
