#include "tensor/kernels/onednn/loops.h"

namespace kolo::tensor::onednn {
const Loops& baseline_loops();
}

#define KOLO_LOOPS baseline_loops
#include "tensor/kernels/onednn/loops.inc"
