// Processors of which no vector width is known: the baseline serves.
#include "tensor/kernels/onednn/loops.h"

namespace kolo::tensor::onednn {

const Loops& best_loops() { return baseline_loops(); }

}  // namespace kolo::tensor::onednn
