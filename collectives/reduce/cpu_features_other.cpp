// Processors of which no vector width is known: the baseline serves.
#include "collectives/reduce/kernels.h"

namespace kolo::reduce {

const Kernels* avx2() { return nullptr; }
const Kernels* avx512() { return nullptr; }

}  // namespace kolo::reduce
