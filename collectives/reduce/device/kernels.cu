#include "collectives/reduce/device/kernels.h"

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "collectives/reduce/device/device.h"
#include "collectives/reduce/device/kernel_table.h"

namespace kolo::inline v0::device {
namespace {

// Memory for load_copies(): an allocation and its free might wait for all streams.
constexpr std::size_t kCopied = 256;
__device__ unsigned char copied[2 * kCopied];

const Table& table_of(ElementType type) {
  if (is_float(type)) {
    if (element_bytes(type) == 1) return kFloat8Kernels;
    return element_bytes(type) == 2 ? kFloat16Kernels : kFloatKernels;
  }
  return element_bytes(type) <= 2 ? kShortIntKernels : kIntKernels;
}

void require(bool condition, ElementType type, const char* what) {
  if (condition) return;
  throw std::invalid_argument("device kernel for " + std::string(to_string(type)) + ": " + what);
}

// Kernels require the alignment of the element type.
void require_aligned(ElementType type, const Pass& pass) {
  const auto is_aligned = [type](const void* operand) {
    return reinterpret_cast<std::uintptr_t>(operand) % element_bytes(type) == 0;
  };
  require(is_aligned(pass.out) && is_aligned(pass.copy) && is_aligned(pass.local) &&
              is_aligned(pass.incoming),
          type, "an operand is not aligned to its elements");
}

void run(ElementType type, const Kernel& kernel, const Pass& pass, Stream stream, int divisor,
         double factor) {
  require_aligned(type, pass);
  if (pass.count != 0) kernel.launch(pass, stream, divisor, factor);
}

}  // namespace

void reduce(ElementType type, ReduceOp op, const Pass& pass, Stream stream, int divisor,
            double factor) {
  require(is_defined(type, op), type, "the operation is not defined for it");
  require(
      pass.count == 0 || (pass.out != nullptr && pass.local != nullptr && pass.incoming != nullptr),
      type, "out, local or incoming is null");
  const bool is_scaled_already = op == ReduceOp::kScaledSum && factor == 1;
  run(type, table_of(type).reduce(type, is_scaled_already ? ReduceOp::kSum : op), pass, stream,
      divisor, factor);
}

void scale(ElementType type, const Pass& pass, Stream stream, int divisor) {
  require(divisor >= 1, type, "the divisor is below 1");
  require(pass.count == 0 || (pass.out != nullptr && pass.local != nullptr), type,
          "out or local is null");
  run(type, table_of(type).scale(type), {pass.out, pass.copy, pass.local, nullptr, pass.count},
      stream, divisor, 1);
}

void multiply(ElementType type, const Pass& pass, Stream stream, double factor) {
  require(is_float(type), type, "a factor is allowed for floats only");
  require(pass.count == 0 || (pass.out != nullptr && pass.local != nullptr), type,
          "out or local is null");
  run(type, table_of(type).scale(type), {pass.out, pass.copy, pass.local, nullptr, pass.count},
      stream, 1, factor);
}

void load(ElementType type) {
  const auto bring = [type](const Kernel& kernel) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel.function),
          "loading the reduction kernels of " + std::string(to_string(type)));
  };
  for (const ReduceOp op : kReduceOps) {
    if (is_defined(type, op)) bring(table_of(type).reduce(type, op));
  }
  if (is_float(type)) bring(table_of(type).reduce(type, ReduceOp::kScaledSum));
  bring(table_of(type).scale(type));
}

void load_copies() {
  void* memory = nullptr;
  check(cudaGetSymbolAddress(&memory, copied), "loading the copies of the device");
  auto* const first = static_cast<std::byte*>(memory);
  std::array<std::byte, kCopied> host{};
  const OwnStream stream;
  copy(first, host.data(), kCopied, stream);
  copy(first + kCopied, first, kCopied, stream);
  copy(host.data(), first + kCopied, kCopied, stream);
  wait(stream);
}

}  // namespace kolo::inline v0::device
