#include "tensor/kernels/onednn/loops.h"

namespace kolo::tensor::onednn {
const Loops& avx2_loops();
}

#define KOLO_LOOPS avx2_loops
#include "tensor/kernels/onednn/loops.inc"
