#include "collectives/reduce/device/math.h"

#include <algorithm>

#include "collectives/reduce/device/kernels.h"

namespace kolo::inline v0::device {
namespace {

Stream as_stream(void* stream) { return static_cast<Stream>(stream); }

device::Pass as_pass(const DeviceMath::Pass& pass) {
  return {pass.out, pass.copy, pass.left, pass.right, pass.count};
}

}  // namespace

KernelMath::KernelMath(const std::vector<ElementType>& types, int number) : number_(number) {
  const ChosenDevice chosen(number_);
  for (const ElementType type : types) load(type);
  load_copies();
}

void KernelMath::copy(void* to, const void* from, std::size_t bytes, void* stream) {
  const ChosenDevice chosen(number_);
  device::copy(to, from, bytes, as_stream(stream));
}

void KernelMath::reduce(ElementType type, ReduceOp op, const Pass& pass, const Scaling& scaling,
                        void* stream) {
  const ChosenDevice chosen(number_);
  device::reduce(type, op, as_pass(pass), as_stream(stream), scaling.divisor, scaling.factor);
}

void KernelMath::multiply(ElementType type, const Pass& pass, double factor, void* stream) {
  const ChosenDevice chosen(number_);
  device::multiply(type, as_pass(pass), as_stream(stream), factor);
}

std::byte* KernelMath::allocate(std::size_t bytes) {
  const ChosenDevice chosen(number_);
  buffers_.emplace_back(bytes);
  return buffers_.back().data();
}

void KernelMath::free(std::byte* memory) noexcept {
  const ChosenDevice chosen(number_);
  std::erase_if(buffers_, [memory](const Buffer& buffer) { return buffer.data() == memory; });
}

}  // namespace kolo::inline v0::device
