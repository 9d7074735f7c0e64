// Element types and reduction operations, with the rules for rounding, overflow and NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kolo::inline v0 {

enum class ElementType : std::uint8_t {
  kFloat32,
  kFloat64,
  kBFloat16,
  kInt32,
  kInt64,
  kFloat16,
  kFloat8E4M3,
  kFloat8E5M2,
  kInt8,
  kInt16,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
};
inline constexpr ElementType kElementTypes[] = {
    ElementType::kFloat32,    ElementType::kFloat64,    ElementType::kBFloat16,
    ElementType::kInt32,      ElementType::kInt64,      ElementType::kFloat16,
    ElementType::kFloat8E4M3, ElementType::kFloat8E5M2, ElementType::kInt8,
    ElementType::kInt16,      ElementType::kUint8,      ElementType::kUint16,
    ElementType::kUint32,     ElementType::kUint64};

// Integers: sums and products wrap, as in two's complement. An average is the wrapped sum divided
// by the number of contributions, rounded towards zero; the division is unsigned in unsigned types.
// Bit operations are defined for integers only.
//
// Floats: float32 and float64 follow IEEE 754. The narrow floats compute each reduction of two
// elements in float32 (an average divides there too) and round once, to nearest even, to the type.
// Values too large for the type become infinity, in float8_e4m3 NaN. Partial results travel in the
// type, so no accumulator is wider than the type between two reductions. A sum over n ranks rounds
// n - 1 times. With recursive_doubling each contribution is rounded at most ceil(log2(n)) times on
// its way.
//
// If a contribution is NaN, the result is NaN, for every operation; which NaN is not defined. -0 is
// smaller than +0. So kMin and kMax do not depend on the order of the contributions, nor do the
// operations of integers.
//
// A scaled sum multiplies first and adds then: each product is rounded to the type before it is
// added, whichever rank adds it. It is computed in float64 for float64, and in float32 for all
// other types; the factor is rounded to that type.
enum class ReduceOp : std::uint8_t {
  kSum,
  kAverage,
  kMin,
  kMax,
  kProduct,
  kBitAnd,
  kBitOr,
  kBitXor,
  kScaledSum,  // floats: factor_0 in_0 + factor_1 in_1 + ..., with each rank's CallOptions::scale
  kUser,       // a function of the caller: user_reduce_op.h
};
// The operations that are defined by a type alone.
inline constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum,   ReduceOp::kAverage, ReduceOp::kMin,
                                          ReduceOp::kMax,   ReduceOp::kProduct, ReduceOp::kBitAnd,
                                          ReduceOp::kBitOr, ReduceOp::kBitXor};

constexpr std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat8E4M3:
    case ElementType::kFloat8E5M2:
    case ElementType::kInt8:
    case ElementType::kUint8:
      return 1;
    case ElementType::kBFloat16:
    case ElementType::kFloat16:
    case ElementType::kInt16:
    case ElementType::kUint16:
      return 2;
    case ElementType::kFloat32:
    case ElementType::kInt32:
    case ElementType::kUint32:
      return 4;
    case ElementType::kFloat64:
    case ElementType::kInt64:
    case ElementType::kUint64:
      return 8;
  }
  return 0;
}

constexpr bool is_float(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
    case ElementType::kFloat64:
    case ElementType::kBFloat16:
    case ElementType::kFloat16:
    case ElementType::kFloat8E4M3:
    case ElementType::kFloat8E5M2:
      return true;
    default:
      return false;
  }
}

// Whether the operation is defined for the type; communicators refuse all other pairs.
constexpr bool is_defined(ElementType type, ReduceOp op) {
  if (type > ElementType::kUint64) return false;  // no such value
  if (op > ReduceOp::kBitXor) return op == ReduceOp::kScaledSum && is_float(type);
  const bool is_of_bits =
      op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr || op == ReduceOp::kBitXor;
  return !(is_of_bits && is_float(type));
}

// Whether the bits of a reduction depend on the order in which elements are combined.
constexpr bool depends_on_order(ElementType type, ReduceOp op) {
  return is_float(type) && op != ReduceOp::kMin && op != ReduceOp::kMax;
}

std::string_view to_string(ElementType type);
std::string_view to_string(ReduceOp op);

// The narrow floats. From the highest bit: sign, exponent, mantissa. Conversions to them round to
// nearest even, keep the sign, and keep NaN.

// The upper 16 bits of a float32.
struct BFloat16 {
  std::uint16_t bits = 0;
};
BFloat16 to_bfloat16(float value);
float to_float(BFloat16 value);

// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa; largest value 65504.
struct Float16 {
  std::uint16_t bits = 0;
};
Float16 to_float16(float value);
float to_float(Float16 value);

// OCP 8-bit floating point (2023), E4M3: largest value 448, no infinities. Infinity, and values
// that would round to more than 448, become NaN, as in PyTorch's float8_e4m3fn; no saturation.
struct Float8E4M3 {
  std::uint8_t bits = 0;
};
Float8E4M3 to_float8_e4m3(float value);
float to_float(Float8E4M3 value);

// OCP E5M2: the upper 8 bits of a binary16; largest value 57344, beyond that infinity.
struct Float8E5M2 {
  std::uint8_t bits = 0;
};
Float8E5M2 to_float8_e5m2(float value);
float to_float(Float8E5M2 value);

// The element type of a C++ type: kElementTypeOf<float>.
template <typename T>
struct ElementTypeOf;
template <>
struct ElementTypeOf<float> : std::integral_constant<ElementType, ElementType::kFloat32> {};
template <>
struct ElementTypeOf<double> : std::integral_constant<ElementType, ElementType::kFloat64> {};
template <>
struct ElementTypeOf<BFloat16> : std::integral_constant<ElementType, ElementType::kBFloat16> {};
template <>
struct ElementTypeOf<Float16> : std::integral_constant<ElementType, ElementType::kFloat16> {};
template <>
struct ElementTypeOf<Float8E4M3> : std::integral_constant<ElementType, ElementType::kFloat8E4M3> {};
template <>
struct ElementTypeOf<Float8E5M2> : std::integral_constant<ElementType, ElementType::kFloat8E5M2> {};
template <>
struct ElementTypeOf<std::int8_t> : std::integral_constant<ElementType, ElementType::kInt8> {};
template <>
struct ElementTypeOf<std::int16_t> : std::integral_constant<ElementType, ElementType::kInt16> {};
template <>
struct ElementTypeOf<std::int32_t> : std::integral_constant<ElementType, ElementType::kInt32> {};
template <>
struct ElementTypeOf<std::int64_t> : std::integral_constant<ElementType, ElementType::kInt64> {};
template <>
struct ElementTypeOf<std::uint8_t> : std::integral_constant<ElementType, ElementType::kUint8> {};
template <>
struct ElementTypeOf<std::uint16_t> : std::integral_constant<ElementType, ElementType::kUint16> {};
template <>
struct ElementTypeOf<std::uint32_t> : std::integral_constant<ElementType, ElementType::kUint32> {};
template <>
struct ElementTypeOf<std::uint64_t> : std::integral_constant<ElementType, ElementType::kUint64> {};
template <typename T>
inline constexpr ElementType kElementTypeOf = ElementTypeOf<T>::value;

// Kernel of one reduction pass over `count` elements: out = local op incoming, and copy = out if
// `copy` is not null. A `divisor` above 1 is for kAverage only: it divides the result, as the last
// step of an average. out and copy may each be the same memory as local or incoming.
using ReduceKernel = void (*)(void* out, void* copy, const void* local, const void* incoming,
                              std::size_t count, int divisor);

// The kernel for a type and an operation, for the widest vectors of this machine. Null: the
// operation is not defined for the type. The kernel of a scaled sum adds operands that are scaled
// already.
ReduceKernel reduce_kernel(ElementType type, ReduceOp op);

// Kernel of out = local / divisor: for an average over a single contribution, or a division without
// a reduction.
using ScaleKernel = void (*)(void* out, const void* local, std::size_t count, int divisor);
ScaleKernel scale_kernel(ElementType type);

// Kernel of out = factor * local, which may be the same memory: scales a contribution to a scaled
// sum. Null for integers.
using MultiplyKernel = void (*)(void* out, const void* local, std::size_t count, double factor);
MultiplyKernel multiply_kernel(ElementType type);

// Kernels of out[i] = in[i] between float32 and a float of 16 bits, with the rounding above. The
// memory of `in` and `out` must not overlap. Null for other types.
using ConvertKernel = void (*)(void* out, const void* in, std::size_t count);
ConvertKernel narrow_kernel(ElementType to);
ConvertKernel widen_kernel(ElementType from);

}  // namespace kolo::inline v0
