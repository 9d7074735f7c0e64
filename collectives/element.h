// Element types, and what a reduction does with two elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kolo {

enum class ElementType : std::uint8_t { kFloat32, kFloat64, kBFloat16, kInt32, kInt64 };

// kAverage is the sum divided by the number of contributions, rounded towards zero for integers.
// kMin and kMax give NaN where any contribution is NaN, so that the result does not depend on the
// order.
enum class ReduceOp : std::uint8_t { kSum, kAverage, kMin, kMax };

constexpr std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kBFloat16:
      return 2;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFloat64:
    case ElementType::kInt64:
      return 8;
  }
  return 0;
}

std::string_view to_string(ElementType type);
std::string_view to_string(ReduceOp op);

// The upper half of a float32; arithmetic is done in float32 and rounded to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;
};
BFloat16 to_bfloat16(float value);
float to_float(BFloat16 value);

// The element type of a C++ type: kElementTypeOf<float>.
template <typename T>
struct ElementTypeOf;
template <>
struct ElementTypeOf<float> {
  static constexpr ElementType value = ElementType::kFloat32;
};
template <>
struct ElementTypeOf<double> {
  static constexpr ElementType value = ElementType::kFloat64;
};
template <>
struct ElementTypeOf<BFloat16> {
  static constexpr ElementType value = ElementType::kBFloat16;
};
template <>
struct ElementTypeOf<std::int32_t> {
  static constexpr ElementType value = ElementType::kInt32;
};
template <>
struct ElementTypeOf<std::int64_t> {
  static constexpr ElementType value = ElementType::kInt64;
};
template <typename T>
inline constexpr ElementType kElementTypeOf = ElementTypeOf<T>::value;

// One pass of a reduction over `count` elements: out = local op incoming, and, where `copy` is not
// null, copy = out. With `divisor` above 1 the result is divided by it (the last step of an
// average). out and copy may be local or incoming.
using ReduceKernel = void (*)(void* out, void* copy, const void* local, const void* incoming,
                              std::size_t count, int divisor);

// The kernel for a type and an operation, in the widest vectors of the machine that runs it.
ReduceKernel reduce_kernel(ElementType type, ReduceOp op);

// out = local / divisor: what an average over a single contribution, or a division apart from a
// reduction, needs.
using ScaleKernel = void (*)(void* out, const void* local, std::size_t count, int divisor);
ScaleKernel scale_kernel(ElementType type);

}  // namespace kolo
