#include "tensor/kernels/onednn/loops.h"

namespace kolo::tensor::onednn {
const Loops& avx512_loops();
}

#define KOLO_LOOPS avx512_loops
#include "tensor/kernels/onednn/loops.inc"
