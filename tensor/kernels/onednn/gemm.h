#pragma once

// Matrix multiplication of plain, row-major floats: oneDNN's sgemm.

#include <cstdint>

namespace kolo::tensor::onednn {

// A matrix whose rows are `stride` elements apart.
struct Matrix {
  const float* data;
  std::int64_t stride;
  bool is_transposed = false;
};

// c[m][n] = a[m][k] b[k][n], plus c if `accumulates`; a transposed matrix is stored as [k][m] or
// [n][k]. Throws std::runtime_error if oneDNN fails.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix a, Matrix b, bool accumulates,
              float* c, std::int64_t c_stride);

}  // namespace kolo::tensor::onednn
