// Selects the baseline loops on processors other than x86-64.
#include "tensor/kernels/onednn/loops.h"

namespace kolo::tensor::onednn {

const Loops& best_loops() { return baseline_loops(); }

}  // namespace kolo::tensor::onednn
