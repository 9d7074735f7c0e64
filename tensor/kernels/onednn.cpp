#include "tensor/kernels/onednn/onednn.h"

#include "tensor/kernels/onednn/parallel.h"

namespace kolo::tensor {

namespace onednn {

Onednn::Onednn(int threads) : threads_(threads), loops_(best_loops()) { enter(); }

// In OpenMP each calling thread has its own number of threads, so ranks that are threads of one
// process do not affect each other.
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
