#include "bench/measure/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace kolo::bench {
namespace {

constexpr std::uint32_t kIndexStep =
    2654435761U;  // odd: elements differ at any distance of a power of two
constexpr std::uint32_t kRankStep = 2246822519U;
constexpr std::uint32_t kSaltStep = 3266489917U;
constexpr int kMostBits = 7;

// The limit up to which all integers are exact in the type.
std::int64_t exact_limit(ElementType type) {
  switch (type) {
    case ElementType::kFloat8E5M2:
      return 1 << 3;
    case ElementType::kFloat8E4M3:
      return 1 << 4;
    case ElementType::kInt8:
      return (1 << 7) - 1;
    case ElementType::kUint8:
      return (1 << 8) - 1;
    case ElementType::kBFloat16:
      return 1 << 8;
    case ElementType::kFloat16:
      return 1 << 11;
    case ElementType::kInt16:
      return (1 << 15) - 1;
    case ElementType::kUint16:
      return (1 << 16) - 1;
    case ElementType::kFloat32:
      return 1 << 24;
    case ElementType::kFloat64:
    case ElementType::kInt32:
    case ElementType::kInt64:
    case ElementType::kUint32:
    case ElementType::kUint64:
      return std::int64_t{1} << 30;
  }
  return 0;
}

// Inputs of an average are multiples of its divisor, so that the result is a whole number.
std::int64_t scale_of(const Pattern& pattern) {
  return pattern.op == ReduceOp::kAverage ? pattern.contributions : 1;
}

// The largest result if every rank contributes `value`; stops a little above the exact limit.
std::int64_t largest_result(const Pattern& pattern, std::int64_t value) {
  const std::int64_t limit = exact_limit(pattern.type);
  std::int64_t result = value * scale_of(pattern);
  if (pattern.op == ReduceOp::kSum || pattern.op == ReduceOp::kAverage) {
    result *= pattern.contributions;
  }
  if (pattern.op != ReduceOp::kProduct || value < 2) return result;
  for (int rank = 1; rank < pattern.contributions && result <= limit; ++rank) result *= value;
  return result;
}

int bits_of(const Pattern& pattern) {
  const std::int64_t limit = exact_limit(pattern.type);
  int bits = 0;
  while (bits < kMostBits && largest_result(pattern, (2 << bits) - 1) <= limit) ++bits;
  return bits;
}

// The values of one rank from element `first` on: a counter and a shift, which compilers vectorize.
struct Values {
  Values(std::size_t first, int rank, const Pattern& pattern)
      : state(static_cast<std::uint32_t>(first) * kIndexStep +
              static_cast<std::uint32_t>(rank) * kRankStep + pattern.salt * kSaltStep),
        shift(32 - bits_of(pattern)) {}

  std::int32_t operator[](std::uint32_t i) const {
    return static_cast<std::int32_t>((state + i * kIndexStep) >> shift);
  }

  std::uint32_t state;
  int shift;
};

template <typename T>
T element_of(std::int32_t value) {
  return static_cast<T>(value);
}
template <>
BFloat16 element_of<BFloat16>(std::int32_t value) {  // exact: bits_of leaves at most 8 bits
  return {
      static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16)};
}

template <>
Float16 element_of<Float16>(std::int32_t value) {
  return to_float16(static_cast<float>(value));
}
template <>
Float8E4M3 element_of<Float8E4M3>(std::int32_t value) {
  return to_float8_e4m3(static_cast<float>(value));
}
template <>
Float8E5M2 element_of<Float8E5M2>(std::int32_t value) {
  return to_float8_e5m2(static_cast<float>(value));
}

template <typename T>
bool differs(T a, T b) {
  if constexpr (std::is_class_v<T>) {
    return a.bits != b.bits;
  } else {
    return a != b;
  }
}

constexpr std::size_t kBlock = 1024;

template <typename T>
[[gnu::always_inline]] inline void fill_loop(T* data, const Values& values, std::uint32_t length,
                                             std::int32_t scale) {
  for (std::uint32_t i = 0; i < length; ++i) data[i] = element_of<T>(values[i] * scale);
}

template <typename T>
[[gnu::always_inline]] inline std::uint32_t compare_loop(const T* data,
                                                         const std::int32_t* expected,
                                                         std::uint32_t length, std::int32_t scale) {
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < length; ++i)
    wrong += differs(data[i], element_of<T>(expected[i] * scale)) ? 1U : 0U;
  return wrong;
}

// expected[i] = combine(expected[i], values[i])
template <typename Combine>
[[gnu::always_inline]] inline void accumulate_by(std::int32_t* expected, const Values& values,
                                                 std::uint32_t length, Combine combine) {
  for (std::uint32_t i = 0; i < length; ++i) expected[i] = combine(expected[i], values[i]);
}

[[gnu::always_inline]] inline void accumulate_loop(std::int32_t* expected, const Values& values,
                                                   std::uint32_t length, ReduceOp op) {
  using Value = std::int32_t;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return accumulate_by(expected, values, length, [](Value a, Value b) { return a + b; });
    case ReduceOp::kMin:
      return accumulate_by(expected, values, length,
                           [](Value a, Value b) { return std::min(a, b); });
    case ReduceOp::kMax:
      return accumulate_by(expected, values, length,
                           [](Value a, Value b) { return std::max(a, b); });
    case ReduceOp::kProduct:
      return accumulate_by(expected, values, length, [](Value a, Value b) { return a * b; });
    case ReduceOp::kBitAnd:
      return accumulate_by(expected, values, length, [](Value a, Value b) { return a & b; });
    case ReduceOp::kBitOr:
      return accumulate_by(expected, values, length, [](Value a, Value b) { return a | b; });
    case ReduceOp::kBitXor:
      return accumulate_by(expected, values, length, [](Value a, Value b) { return a ^ b; });
    case ReduceOp::kScaledSum:
    case ReduceOp::kUser:
      return;  // not measured
  }
}

#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2")]] void fill_avx2(T* data, const Values& values, std::uint32_t length,
                                       std::int32_t scale) {
  fill_loop(data, values, length, scale);
}

template <typename T>
[[gnu::target("avx2")]] std::uint32_t compare_avx2(const T* data, const std::int32_t* expected,
                                                   std::uint32_t length, std::int32_t scale) {
  return compare_loop(data, expected, length, scale);
}

[[gnu::target("avx2")]] void accumulate_avx2(std::int32_t* expected, const Values& values,
                                             std::uint32_t length, ReduceOp op) {
  accumulate_loop(expected, values, length, op);
}

bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }
#endif

// The next three functions take most of a benchmark's time without AVX2.
template <typename T>
void fill_block(T* data, const Values& values, std::uint32_t length, std::int32_t scale) {
#if defined(__x86_64__)
  if (has_avx2()) return fill_avx2(data, values, length, scale);
#endif
  fill_loop(data, values, length, scale);
}

template <typename T>
std::uint32_t compare_block(const T* data, const std::int32_t* expected, std::uint32_t length,
                            std::int32_t scale) {
#if defined(__x86_64__)
  if (has_avx2()) return compare_avx2(data, expected, length, scale);
#endif
  return compare_loop(data, expected, length, scale);
}

void accumulate(std::int32_t* expected, const Values& values, std::uint32_t length, ReduceOp op) {
#if defined(__x86_64__)
  if (has_avx2()) return accumulate_avx2(expected, values, length, op);
#endif
  accumulate_loop(expected, values, length, op);
}

template <typename T>
void fill_as(T* data, std::size_t first, std::size_t count, int rank, const Pattern& pattern) {
  const auto scale = static_cast<std::int32_t>(scale_of(pattern));
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const auto length = static_cast<std::uint32_t>(std::min(kBlock, count - begin));
    fill_block(data + begin, Values(first + begin, rank, pattern), length, scale);
  }
}

// `scale` is a factor of the expected values.
template <typename T>
std::uint64_t count_wrong_as(const T* data, std::size_t first, std::size_t count, int first_rank,
                             int ranks, std::int32_t scale, const Pattern& pattern) {
  std::uint64_t wrong = 0;
  std::int32_t expected[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const auto length = static_cast<std::uint32_t>(std::min(kBlock, count - begin));
    const Values own(first + begin, first_rank, pattern);
    for (std::uint32_t i = 0; i < length; ++i) expected[i] = own[i];
    for (int rank = 1; rank < ranks; ++rank) {
      accumulate(expected, Values(first + begin, first_rank + rank, pattern), length, pattern.op);
    }
    wrong += compare_block(data + begin, expected, length, scale);
  }
  return wrong;
}

// Calls `work` with a null pointer of the element's C++ type.
template <typename Work>
auto with_type(ElementType type, Work work) {
  switch (type) {
    case ElementType::kFloat64:
      return work(static_cast<double*>(nullptr));
    case ElementType::kBFloat16:
      return work(static_cast<BFloat16*>(nullptr));
    case ElementType::kFloat16:
      return work(static_cast<Float16*>(nullptr));
    case ElementType::kFloat8E4M3:
      return work(static_cast<Float8E4M3*>(nullptr));
    case ElementType::kFloat8E5M2:
      return work(static_cast<Float8E5M2*>(nullptr));
    case ElementType::kInt8:
      return work(static_cast<std::int8_t*>(nullptr));
    case ElementType::kInt16:
      return work(static_cast<std::int16_t*>(nullptr));
    case ElementType::kInt32:
      return work(static_cast<std::int32_t*>(nullptr));
    case ElementType::kInt64:
      return work(static_cast<std::int64_t*>(nullptr));
    case ElementType::kUint8:
      return work(static_cast<std::uint8_t*>(nullptr));
    case ElementType::kUint16:
      return work(static_cast<std::uint16_t*>(nullptr));
    case ElementType::kUint32:
      return work(static_cast<std::uint32_t*>(nullptr));
    case ElementType::kUint64:
      return work(static_cast<std::uint64_t*>(nullptr));
    case ElementType::kFloat32:
      break;
  }
  return work(static_cast<float*>(nullptr));
}

}  // namespace

void require_exact(const Pattern& pattern) {
  if (bits_of(pattern) > 0) return;
  throw std::invalid_argument(fmt::format(
      "the {} of {} ranks cannot be checked to the bit in {}; take fewer ranks or another type",
      to_string(pattern.op), pattern.contributions, to_string(pattern.type)));
}

void fill(void* data, std::size_t first, std::size_t count, int rank, const Pattern& pattern) {
  with_type(pattern.type, [&](auto* null) {
    fill_as(static_cast<decltype(null)>(data), first, count, rank, pattern);
  });
}

std::uint64_t count_wrong_reductions(const void* data, std::size_t first, std::size_t count,
                                     int first_rank, const Pattern& pattern) {
  return count_wrong_reductions(data, first, count, first_rank, pattern.contributions, pattern);
}

std::uint64_t count_wrong_reductions(const void* data, std::size_t first, std::size_t count,
                                     int first_rank, int ranks, const Pattern& pattern) {
  // The inputs of an average are multiples of its divisor, so its result is the sum without that
  // factor.
  return with_type(pattern.type, [&](auto* null) {
    return count_wrong_as(static_cast<decltype(null)>(const_cast<void*>(data)), first, count,
                          first_rank, ranks, 1, pattern);
  });
}

std::uint64_t count_wrong_copies(const void* data, std::size_t first, std::size_t count, int rank,
                                 const Pattern& pattern) {
  return with_type(pattern.type, [&](auto* null) {
    return count_wrong_as(static_cast<decltype(null)>(const_cast<void*>(data)), first, count, rank,
                          1, static_cast<std::int32_t>(scale_of(pattern)), pattern);
  });
}

}  // namespace kolo::bench
