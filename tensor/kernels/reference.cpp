#include "tensor/kernels/reference/reference.h"

#include <bit>
#include <cmath>

namespace kolo::tensor {

namespace {

// To the nearest, ties to even.
float rounded_to_bfloat16(float value) {
  if (std::isnan(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000U);
}

}  // namespace

Operand::Operand(Precision precision, const float* values, std::int64_t count) : values_(values) {
  if (precision == Precision::float32) return;
  rounded_.assign(values, values + count);
  for (float& value : rounded_) value = rounded_to_bfloat16(value);
}

std::unique_ptr<Backend> make_reference(int, Precision precision) {
  return std::make_unique<Reference>(precision);
}

}  // namespace kolo::tensor
