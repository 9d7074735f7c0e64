#include "tensor/kernels/onednn/onednn.h"

#include "tensor/kernels/onednn/parallel.h"

namespace kolo::tensor {

namespace onednn {

Onednn::Onednn(int threads) : threads_(threads), loops_(best_loops()) { enter(); }

// The number of threads belongs to the calling thread in OpenMP: ranks as threads do not disturb
// one another.
void Onednn::enter() { omp_set_num_threads(threads_); }

float* Onednn::scratch(std::int64_t count) {
  if (scratch_.size() < static_cast<std::size_t>(count)) {
    scratch_.resize(static_cast<std::size_t>(count));
  }
  return scratch_.data();
}

}  // namespace onednn

std::unique_ptr<Backend> make_onednn(int threads) {
  return std::make_unique<onednn::Onednn>(threads);
}

}  // namespace kolo::tensor
