// Passes of the device's reduction kernels with operands, aliases and alignments of all kinds. Each
// is compared with the host's kernels bit for bit (any NaN matches a NaN). The test provides the
// runner: the kernels' source as functions on this machine, or the device.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "collectives/element.h"
#include "test/support/catch.h"

#define KOLO_EVERY_TYPE                                                                \
  float, double, BFloat16, Float16, Float8E4M3, Float8E5M2, std::int8_t, std::int16_t, \
      std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t

namespace kolo::test {

enum class Alias { kNone, kOutIsLocal, kOutIsIncoming, kOutIsLocalCopyIsIncoming };

struct Shape {
  std::size_t count;
  std::size_t out, copy, local, incoming;  // index of the first element of the pass in each buffer
};

// Input of a runner. All buffers have `length` elements; aliased operands share one buffer.
template <typename T>
struct PassCase {
  ReduceOp op;
  int divisor;
  double factor;
  Shape shape;
  Alias alias;
};

template <typename T>
struct Buffers {
  std::vector<T> out, copy, local, incoming;
};

template <typename T>
T rounded(float value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(value);
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else if constexpr (std::is_same_v<T, Float8E4M3>) {
    return to_float8_e4m3(value);
  } else if constexpr (std::is_same_v<T, Float8E5M2>) {
    return to_float8_e5m2(value);
  } else {
    return static_cast<T>(value);
  }
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_class_v<T>) {
    return std::isnan(to_float(value));
  } else {
    return value != value;
  }
}

template <typename T>
bool is_same(T a, T b) {
  return (is_nan(a) && is_nan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0;
}

// A quarter are random bits, including subnormals, infinities and NaNs; the rest are small numbers.
template <typename T>
std::vector<T> operands(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    const std::uint64_t bits = random();
    const auto small = static_cast<float>(bits >> 8 & 0xff) / 8;
    value = rounded<T>(std::is_unsigned_v<T> || bits >> 7 & 1 ? small : -small);
    if (bits >> 62 == 0) std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  }
  return values;
}

inline std::vector<Shape> shapes(std::size_t tile) {
  std::vector<Shape> shapes;
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{15}, std::size_t{16},
        std::size_t{17}, std::size_t{33}, std::size_t{250}, tile - 1, tile, 2 * tile + 37}) {
    shapes.push_back({count, 0, 0, 0, 0});
    shapes.push_back({count, 3, 3, 3, 3});
    shapes.push_back({count, 0, 1, 2, 4});
    shapes.push_back({count, 5, 8, 0, 16});
    shapes.push_back({count, 1, 0, 0, 0});
  }
  return shapes;
}

template <typename T>
std::vector<PassCase<T>> cases_of(ReduceOp op, std::size_t tile) {
  std::vector<PassCase<T>> cases;
  int turn = 0;
  for (const Shape& shape : shapes(tile)) {
    for (const Alias alias : {Alias::kNone, Alias::kOutIsLocal, Alias::kOutIsIncoming,
                              Alias::kOutIsLocalCopyIsIncoming}) {
      constexpr int kDivisors[] = {1, 2, 3, 8, 100};
      constexpr double kFactors[] = {1, 0.3, -2, 1e-3};
      const int divisor = op == ReduceOp::kAverage ? kDivisors[turn % 5] : 1;
      const double factor = op == ReduceOp::kScaledSum ? kFactors[turn % 4] : 1;
      ++turn;
      cases.push_back({op, divisor, factor, shape, alias});
    }
  }
  return cases;
}

// The expected result, by the host's kernels.
template <typename T>
void run_expected(const PassCase<T>& pass, T* out, T* copy, const T* local, const T* incoming) {
  constexpr ElementType kType = kElementTypeOf<T>;
  std::vector<T> scaled(local, local + pass.shape.count);
  if (pass.op == ReduceOp::kScaledSum) {
    multiply_kernel(kType)(scaled.data(), local, pass.shape.count, pass.factor);
  }
  reduce_kernel(kType, pass.op)(out, copy, scaled.data(), incoming, pass.shape.count, pass.divisor);
}

// Calls `run(pass, length, out, copy, local, incoming)` with pointers to whole buffers of `length`
// elements. The shape says where the elements of the pass begin. The alias says whether out or copy
// shares the buffer of local or incoming.
template <typename T, typename Run>
void check_pass(const PassCase<T>& pass, const Run& run) {
  Shape at = pass.shape;
  if (pass.alias != Alias::kNone) at.out = at.copy = at.local = at.incoming;
  const std::size_t length = at.count + 24;
  const auto a = operands<T>(length, 1), b = operands<T>(length, 2);
  const auto run_into = [&](const auto& by) {
    std::vector<T> apart(a), copied(b), local(a), incoming(b);
    T* out = pass.alias == Alias::kNone            ? apart.data()
             : pass.alias == Alias::kOutIsIncoming ? incoming.data()
                                                   : local.data();
    const bool is_copy_incoming = pass.alias == Alias::kOutIsLocalCopyIsIncoming;
    T* copy = pass.alias == Alias::kNone ? copied.data()
              : is_copy_incoming         ? incoming.data()
                                         : nullptr;
    by(out, copy, local.data(), incoming.data());
    return Buffers<T>{std::move(apart), std::move(copied), std::move(local), std::move(incoming)};
  };
  PassCase<T> placed = pass;
  placed.shape = at;
  const Buffers<T> found = run_into([&](T* out, T* copy, T* local, T* incoming) {
    run(placed, length, out, copy, local, incoming);
  });
  const Buffers<T> expected = run_into([&](T* out, T* copy, T* local, T* incoming) {
    run_expected(placed, out + at.out, copy == nullptr ? nullptr : copy + at.copy, local + at.local,
                 incoming + at.incoming);
  });
  for (std::size_t i = 0; i < length; ++i) {
    if (is_same(found.out[i], expected.out[i]) && is_same(found.copy[i], expected.copy[i]) &&
        is_same(found.local[i], expected.local[i]) &&
        is_same(found.incoming[i], expected.incoming[i])) {
      continue;
    }
    FAIL(to_string(kElementTypeOf<T>)
         << " " << to_string(pass.op) << " of " << at.count << " elements, out at " << at.out
         << ", copy at " << at.copy << ", local at " << at.local << ", incoming at " << at.incoming
         << ", divisor " << pass.divisor << ", factor " << pass.factor << ", alias "
         << static_cast<int>(pass.alias) << ": element " << i << " of the buffers differs");
  }
}

// All operations that the type supports, including the scaled sum.
template <typename T>
std::vector<ReduceOp> operations() {
  std::vector<ReduceOp> defined;
  for (const ReduceOp op : kReduceOps) {
    if (is_defined(kElementTypeOf<T>, op)) defined.push_back(op);
  }
  if (is_float(kElementTypeOf<T>)) defined.push_back(ReduceOp::kScaledSum);
  return defined;
}

}  // namespace kolo::test
