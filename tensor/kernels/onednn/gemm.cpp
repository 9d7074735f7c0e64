#include "tensor/kernels/onednn/gemm.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <map>
#include <stdexcept>
#include <tuple>

#include "tensor/kernels/onednn/version.h"

namespace kolo::tensor::onednn {

using dnnl::memory;

struct Multiplications::State {
  // Everything that a primitive depends on.
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool, std::int64_t,
                         bool, bool, std::int64_t>;
  struct Known {
    memory::desc a, b, c;
    dnnl::matmul primitive;
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, Known> known;

  static memory::desc operand(std::int64_t rows, std::int64_t columns, const Matrix& matrix) {
    return {{rows, columns},
            memory::data_type::bf16,
            matrix.is_transposed ? memory::dims{1, matrix.stride} : memory::dims{matrix.stride, 1}};
  }

  memory view(const memory::desc& description, const void* data) {
    return {description, engine, const_cast<void*>(data)};
  }
};

Multiplications::Multiplications(Precision precision) {
  if (precision == Precision::bfloat16) state_ = std::make_unique<State>();
}
Multiplications::~Multiplications() = default;

Matrix Multiplications::at(const void* data, std::int64_t elements, std::int64_t stride,
                           bool is_transposed) const {
  const auto bytes =
      elements * static_cast<std::int64_t>(state_ ? sizeof(std::uint16_t) : sizeof(float));
  return {static_cast<const std::byte*>(data) + bytes, stride, is_transposed};
}

void Multiplications::multiply(std::int64_t m, std::int64_t n, std::int64_t k, Matrix a, Matrix b,
                               bool accumulates, float* c, std::int64_t c_stride) {
  if (!state_) {
    const dnnl_status_t status =
        dnnl_sgemm(a.is_transposed ? 'T' : 'N', b.is_transposed ? 'T' : 'N', m, n, k, 1.0F,
                   static_cast<const float*>(a.data), a.stride, static_cast<const float*>(b.data),
                   b.stride, accumulates ? 1.0F : 0.0F, c, c_stride);
    if (status != dnnl_success) {
      throw std::runtime_error(fmt::format("onednn: sgemm of {} x {} x {} failed, status {}", m, n,
                                           k, static_cast<int>(status)));
    }
    return;
  }
  State& s = *state_;
  const State::Key key{
      m, n, k, a.stride, a.is_transposed, b.stride, b.is_transposed, accumulates, c_stride};
  auto found = s.known.find(key);
  if (found == s.known.end()) {
    const memory::desc left = State::operand(m, k, a), right = State::operand(k, n, b);
    const memory::desc result({m, n}, memory::data_type::f32, memory::dims{c_stride, 1});
    found = s.known
                .emplace(key, State::Known{left, right, result,
                                           dnnl::matmul(matmul_description(s.engine, left, right,
                                                                           result, accumulates))})
                .first;
  }
  const State::Known& known = found->second;
  known.primitive.execute(s.stream, {{DNNL_ARG_SRC, s.view(known.a, a.data)},
                                     {DNNL_ARG_WEIGHTS, s.view(known.b, b.data)},
                                     {DNNL_ARG_DST, s.view(known.c, c)}});
  s.stream.wait();
}

}  // namespace kolo::tensor::onednn
