#include "tensor/kernels/onednn/gemm.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <stdexcept>

namespace kolo::tensor::onednn {

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix a, Matrix b, bool accumulates,
              float* c, std::int64_t c_stride) {
  const dnnl_status_t status =
      dnnl_sgemm(a.is_transposed ? 'T' : 'N', b.is_transposed ? 'T' : 'N', m, n, k, 1.0F, a.data,
                 a.stride, b.data, b.stride, accumulates ? 1.0F : 0.0F, c, c_stride);
  if (status != dnnl_success) {
    throw std::runtime_error(fmt::format("onednn: sgemm of {} x {} x {} failed, status {}", m, n, k,
                                         static_cast<int>(status)));
  }
}

}  // namespace kolo::tensor::onednn
