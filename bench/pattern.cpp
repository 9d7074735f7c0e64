#include "bench/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace kolo::bench {
namespace {

constexpr std::uint32_t kIndexStep = 2654435761U;  // odd: elements at any power of two apart differ
constexpr std::uint32_t kRankStep = 2246822519U;
constexpr std::uint32_t kSaltStep = 3266489917U;
constexpr int kMostBits = 7;

// The largest integer up to which all integers are exact.
std::int64_t exact_limit(ElementType type) {
  switch (type) {
    case ElementType::kBFloat16:
      return 1 << 8;
    case ElementType::kFloat32:
      return 1 << 24;
    case ElementType::kFloat64:
    case ElementType::kInt32:
    case ElementType::kInt64:
      return std::int64_t{1} << 30;
  }
  return 0;
}

// An average is made of multiples of its divisor, so that it comes out even.
std::int64_t scale_of(const Pattern& pattern) {
  return pattern.op == ReduceOp::kAverage ? pattern.contributions : 1;
}

int bits_of(const Pattern& pattern) {
  const bool is_summed = pattern.op == ReduceOp::kSum || pattern.op == ReduceOp::kAverage;
  const std::int64_t terms = (is_summed ? pattern.contributions : 1) * scale_of(pattern);
  int bits = 0;
  while (bits < kMostBits && terms * ((2 << bits) - 1) <= exact_limit(pattern.type)) ++bits;
  return bits;
}

// The values of one rank, from some element on: a counter and a shift, so that compilers make
// vectors of it.
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
BFloat16 element_of<BFloat16>(std::int32_t value) {  // exact: bits_of leaves no more than 8 bits
  return {
      static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16)};
}

template <typename T>
bool differs(T a, T b) {
  return a != b;
}
bool differs(BFloat16 a, BFloat16 b) { return a.bits != b.bits; }

constexpr std::size_t kBlock = 1024;

template <typename T>
void fill_as(T* data, std::size_t first, std::size_t count, int rank, const Pattern& pattern) {
  const auto scale = static_cast<std::int32_t>(scale_of(pattern));
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const Values values(first + begin, rank, pattern);
    const auto length = static_cast<std::uint32_t>(std::min(kBlock, count - begin));
    for (std::uint32_t i = 0; i < length; ++i) data[begin + i] = element_of<T>(values[i] * scale);
  }
}

// expected[i] = expected[i] op values[i]
void accumulate(std::int32_t* expected, const Values& values, std::uint32_t length, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      for (std::uint32_t i = 0; i < length; ++i) expected[i] += values[i];
      break;
    case ReduceOp::kMin:
      for (std::uint32_t i = 0; i < length; ++i) expected[i] = std::min(expected[i], values[i]);
      break;
    case ReduceOp::kMax:
      for (std::uint32_t i = 0; i < length; ++i) expected[i] = std::max(expected[i], values[i]);
      break;
  }
}

// `scale`: what the expected values are multiplied by.
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
    std::uint32_t in_block = 0;
    for (std::uint32_t i = 0; i < length; ++i) {
      in_block += differs(data[begin + i], element_of<T>(expected[i] * scale)) ? 1U : 0U;
    }
    wrong += in_block;
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
    case ElementType::kInt32:
      return work(static_cast<std::int32_t*>(nullptr));
    case ElementType::kInt64:
      return work(static_cast<std::int64_t*>(nullptr));
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
  // An average of multiples of its divisor is the sum without the factor.
  return with_type(pattern.type, [&](auto* null) {
    return count_wrong_as(static_cast<decltype(null)>(const_cast<void*>(data)), first, count,
                          first_rank, pattern.contributions, 1, pattern);
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
