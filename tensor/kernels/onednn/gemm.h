#pragma once

// Matrix multiplication of plain, row-major matrices by oneDNN: of floats, or of bfloat16 with sums
// in float32.

#include <cstdint>
#include <memory>

#include "tensor/kernels/kernels.h"

namespace kolo::tensor::onednn {

// A matrix whose rows are `stride` elements apart. The elements are of the precision.
struct Matrix {
  const void* data;
  std::int64_t stride;
  bool is_transposed = false;
};

// The multiplications of one network. Those of bfloat16 are created once per shape and kept.
class Multiplications {
 public:
  explicit Multiplications(Precision precision);
  ~Multiplications();

  // c[m][n] = a[m][k] b[k][n], plus c if `accumulates`; a transposed matrix is stored as [k][m] or
  // [n][k]. Throws std::runtime_error if oneDNN fails.
  void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix a, Matrix b,
                bool accumulates, float* c, std::int64_t c_stride);
  // The matrix that begins `elements` behind `data`.
  Matrix at(const void* data, std::int64_t elements, std::int64_t stride,
            bool is_transposed = false) const;

 private:
  struct State;  // of bfloat16
  std::unique_ptr<State> state_;
};

}  // namespace kolo::tensor::onednn
