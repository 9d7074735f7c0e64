#include "tensor/kernels/onednn/onednn.h"

#include <stdexcept>

#include "tensor/kernels/onednn/parallel.h"

namespace kolo::tensor {

namespace onednn {

namespace {

bool has_bfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace

Onednn::Onednn(int threads, Precision precision)
    : threads_(threads),
      loops_(best_loops()),
      precision_(precision),
      convolutions_(precision),
      multiplications_(precision) {
  if (precision == Precision::bfloat16 && !has_bfloat16())
    throw std::invalid_argument(
        "this processor has no instructions for bfloat16 (AVX512-BF16): use float32");
  enter();
}

// In OpenMP each calling thread has its own number of threads, so ranks that are threads of one
// process do not affect each other.
void Onednn::enter() { omp_set_num_threads(threads_); }

float* Onednn::scratch(std::int64_t count) {
  if (scratch_.size() < static_cast<std::size_t>(count)) {
    scratch_.resize(static_cast<std::size_t>(count));
  }
  return scratch_.data();
}

const void* Onednn::operand(std::int64_t count, const float* values, int place) {
  if (precision_ == Precision::float32) return values;
  std::vector<std::uint16_t>& narrow = narrow_[place];
  if (narrow.size() < static_cast<std::size_t>(count))
    narrow.resize(static_cast<std::size_t>(count));
  parallel_ranges(threads_, count, 1, [&](std::int64_t begin, std::int64_t end) {
    loops_.narrow(end - begin, values + begin, narrow.data() + begin);
  });
  return narrow.data();
}

}  // namespace onednn

std::unique_ptr<Backend> make_onednn(int threads, Precision precision) {
  return std::make_unique<onednn::Onednn>(threads, precision);
}

}  // namespace kolo::tensor
