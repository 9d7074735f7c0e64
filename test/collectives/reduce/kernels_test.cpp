// Reduction kernels of every vector width, compared with plain arithmetic one element at a time.
//
// Operands are random bits, special values and ordinary ones. Results must match bit for bit,
// except that any NaN matches a NaN.
#include "collectives/reduce/kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "test/support/catch.h"

namespace kolo {
namespace {

constexpr unsigned kSeed = 20;

#define KOLO_EVERY_TYPE                                                                \
  float, double, BFloat16, Float16, Float8E4M3, Float8E5M2, std::int8_t, std::int16_t, \
      std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t

std::vector<const reduce::Kernels*> tables() {
  std::vector<const reduce::Kernels*> found{&reduce::baseline()};
  for (const reduce::Kernels* table : {reduce::avx2(), reduce::avx512()}) {
    if (table != nullptr) found.push_back(table);
  }
  return found;
}

// --- expected results ---

// A value in the type in which it is computed.
template <typename T>
auto opened(T value) {
  if constexpr (std::is_class_v<T>) {
    return to_float(value);
  } else {
    return value;
  }
}

template <typename T>
T closed(float value) {
  return static_cast<T>(value);
}
template <>
BFloat16 closed<BFloat16>(float value) {
  return to_bfloat16(value);
}
template <>
Float16 closed<Float16>(float value) {
  return to_float16(value);
}
template <>
Float8E4M3 closed<Float8E4M3>(float value) {
  return to_float8_e4m3(value);
}
template <>
Float8E5M2 closed<Float8E5M2>(float value) {
  return to_float8_e5m2(value);
}

template <typename F>
F reduced_float(ReduceOp op, F a, F b, int divisor) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<F>::quiet_NaN();
  const bool is_a_less = a < b || (a == b && std::signbit(a));
  switch (op) {
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kAverage:
      return (a + b) / static_cast<F>(divisor);
    case ReduceOp::kMin:
      return is_a_less ? a : b;
    case ReduceOp::kMax:
      return is_a_less ? b : a;
    default:
      return a * b;
  }
}

// Computes in 64 bits; the result is the lower part.
template <typename T>
T reduced_integer(ReduceOp op, T a, T b, int divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<T>(x + y);
    case ReduceOp::kAverage:
      return static_cast<T>(static_cast<Wide>(static_cast<T>(x + y)) / static_cast<Wide>(divisor));
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kProduct:
      return static_cast<T>(x * y);
    case ReduceOp::kBitAnd:
      return static_cast<T>(x & y);
    case ReduceOp::kBitOr:
      return static_cast<T>(x | y);
    case ReduceOp::kBitXor:
      return static_cast<T>(x ^ y);
    case ReduceOp::kScaledSum:
    case ReduceOp::kUser:
      break;
  }
  return T{};
}

template <typename T>
T reduced(ReduceOp op, T a, T b, int divisor) {
  if constexpr (std::is_integral_v<T>) {
    return reduced_integer(op, a, b, divisor);
  } else if constexpr (std::is_class_v<T>) {
    return closed<T>(reduced_float(op, to_float(a), to_float(b), divisor));
  } else {
    return reduced_float(op, a, b, divisor);
  }
}

template <typename T>
T multiplied(T value, double factor) {
  if constexpr (std::is_same_v<T, double>) {
    return value * factor;
  } else {
    return closed<T>(opened(value) * static_cast<float>(factor));
  }
}

template <typename T>
bool is_nan(T value) {
  return opened(value) != opened(value);
}

template <typename T>
bool is_same(T a, T b) {
  return (is_nan(a) && is_nan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0;
}

// --- operands ---

template <typename T>
T special(unsigned which) {
  if constexpr (std::is_integral_v<T>) {
    const T values[] = {T{0}, T{1}, static_cast<T>(-1), std::numeric_limits<T>::min(),
                        std::numeric_limits<T>::max()};
    return values[which % 5];
  } else {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float values[] = {0.0F,          -0.0F,    1.0F,   -1.0F,     kInfinity, -kInfinity,
                            std::nanf(""), 65504.0F, 448.0F, -57344.0F, 3e38F,     1e-7F};
    return closed<T>(values[which % 12]);
  }
}

template <typename T>
std::vector<T> operands(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 10);
  std::vector<T> values(count);
  for (T& value : values) {
    const std::uint64_t bits = random();
    std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
    if (bits >> 62 == 1) value = special<T>(static_cast<unsigned>(bits >> 32));
    if (bits >> 62 >= 2) value = closed<T>(std::abs(normal(random)));
    if constexpr (std::is_signed_v<T> || std::is_class_v<T>) {
      if (bits >> 62 == 3) value = closed<T>(normal(random));
    }
  }
  return values;
}

// --- passes ---

enum class Alias { kNone, kOutIsLocal, kOutIsIncoming, kOutIsLocalCopyIsIncoming };

// Elements before and after those of a pass. They must not change.
constexpr std::size_t kMargin = 8;

struct Pass {
  ReduceOp op;
  std::size_t count;
  std::size_t shift;  // index of the first element of the pass in each buffer
  int divisor;
  Alias alias;
};

template <typename T>
void check_pass(const reduce::Kernels& table, const Pass& pass, const std::vector<T>& a,
                const std::vector<T>& b) {
  const std::size_t length = pass.shift + pass.count + kMargin;
  std::vector<T> local(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(length));
  std::vector<T> incoming(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(length));
  std::vector<T> apart(local), copied(incoming);
  const bool has_copy =
      pass.alias == Alias::kNone || pass.alias == Alias::kOutIsLocalCopyIsIncoming;
  std::vector<T>& out = pass.alias == Alias::kNone            ? apart
                        : pass.alias == Alias::kOutIsIncoming ? incoming
                                                              : local;
  const bool is_copy_apart = pass.alias == Alias::kNone || pass.alias == Alias::kOutIsIncoming;
  std::vector<T>& copy = is_copy_apart ? copied : incoming;
  std::vector<T> expected_out(out), expected_copy(copy);
  for (std::size_t i = pass.shift; i < pass.shift + pass.count; ++i) {
    expected_out[i] = reduced(pass.op, a[i], b[i], pass.divisor);
    if (has_copy) expected_copy[i] = expected_out[i];
  }
  table.reduce(kElementTypeOf<T>, pass.op)(
      out.data() + pass.shift, has_copy ? copy.data() + pass.shift : nullptr,
      local.data() + pass.shift, incoming.data() + pass.shift, pass.count, pass.divisor);
  for (std::size_t i = 0; i < length; ++i) {
    if (is_same(out[i], expected_out[i]) && is_same(copy[i], expected_copy[i])) continue;
    FAIL(table.name << " " << to_string(kElementTypeOf<T>) << " " << to_string(pass.op) << " count "
                    << pass.count << " shift " << pass.shift << " divisor " << pass.divisor
                    << " alias " << static_cast<int>(pass.alias) << " element " << i << ": "
                    << +opened(a[i]) << " with " << +opened(b[i]) << " gives " << +opened(out[i])
                    << ", copied as " << +opened(copy[i]) << ", expected "
                    << +opened(expected_out[i]));
  }
}

// Counts around the vector widths and around the blocks of narrow floats.
std::vector<std::size_t> counts() {
  std::vector<std::size_t> counts{255, 256, 257, 511, 512, 513, 1030};
  for (std::size_t count = 0; count < 140; count += count < 70 ? 1 : 23) counts.push_back(count);
  return counts;
}

}  // namespace

TEMPLATE_TEST_CASE("kernels agree with plain arithmetic at every length and alignment", "",
                   KOLO_EVERY_TYPE) {
  const auto a = operands<TestType>(1100, kSeed), b = operands<TestType>(1100, kSeed + 1);
  for (const reduce::Kernels* table : tables()) {
    for (const ReduceOp op : kReduceOps) {
      if (!is_defined(kElementTypeOf<TestType>, op)) continue;
      for (const std::size_t count : counts()) {
        for (const Alias alias : {Alias::kNone, Alias::kOutIsLocal, Alias::kOutIsIncoming,
                                  Alias::kOutIsLocalCopyIsIncoming}) {
          const int divisor = op == ReduceOp::kAverage ? 1 + static_cast<int>(count % 4) : 1;
          check_pass<TestType>(*table, {op, count, count % 5, divisor, alias}, a, b);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("averages divide with the arithmetic of the type, by any number of ranks", "",
                   KOLO_EVERY_TYPE) {
  const auto a = operands<TestType>(1100, kSeed + 2), b = operands<TestType>(1100, kSeed + 3);
  for (const reduce::Kernels* table : tables()) {
    for (const int divisor : {1, 2, 3, 5, 8, 127, 128, 200, 256, 300, 65537}) {
      check_pass<TestType>(*table, {ReduceOp::kAverage, 1000, 0, divisor, Alias::kNone}, a, b);
      std::vector<TestType> out(a.size());
      table->scale(kElementTypeOf<TestType>)(out.data(), a.data(), a.size(), divisor);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const TestType expected = reduced(ReduceOp::kAverage, a[i], TestType{}, divisor);
        if (opened(a[i]) == 0 || is_same(out[i], expected)) continue;
        FAIL(table->name << " " << +opened(a[i]) << " / " << divisor << ": " << +opened(out[i]));
      }
    }
  }
}

TEMPLATE_TEST_CASE("products with a factor are rounded once, at every length, also in place", "",
                   float, double, BFloat16, Float16, Float8E4M3, Float8E5M2) {
  const auto a = operands<TestType>(1100, kSeed + 6);
  for (const reduce::Kernels* table : tables()) {
    const MultiplyKernel multiply = table->multiply(kElementTypeOf<TestType>);
    for (const double factor : {1.0, -0.5, 0.1, 1e-3, 3e7, 0.0, -1.0 / 3}) {
      for (const std::size_t count : counts()) {
        const std::size_t shift = count % 5;
        std::vector<TestType> in_place(a), apart(a);
        multiply(in_place.data() + shift, in_place.data() + shift, count, factor);
        multiply(apart.data() + shift, a.data() + shift, count, factor);
        for (std::size_t i = 0; i < shift + count + kMargin; ++i) {
          const bool is_inside = i >= shift && i < shift + count;
          const TestType expected = is_inside ? multiplied(a[i], factor) : a[i];
          if (is_same(in_place[i], expected) && is_same(apart[i], expected)) continue;
          FAIL(table->name << " " << to_string(kElementTypeOf<TestType>) << " count " << count
                           << " element " << i << ": " << +opened(a[i]) << " * " << factor
                           << " gives " << +opened(apart[i]) << ", in place "
                           << +opened(in_place[i]));
        }
      }
    }
  }
}

TEST_CASE("float16 instructions give the same bits as portable code") {
  std::vector<Float16> all(65536), out(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  std::mt19937 random(kSeed);
  for (const reduce::Kernels* table : tables()) {
    for (int divisor = 1; divisor < 60; ++divisor) {  // quotients use all mantissa bits
      table->scale(ElementType::kFloat16)(out.data(), all.data(), all.size(), divisor);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const float value = to_float(all[i]) / static_cast<float>(divisor);
        if (out[i].bits != to_float16(value).bits) FAIL(table->name << ": " << i << "/" << divisor);
      }
    }
    for (int round = 0; round < 60; ++round) {  // products overflow and underflow
      const std::vector<Float16> by(all.size(), all[random() % 0x7c00]);
      table->reduce(ElementType::kFloat16, ReduceOp::kProduct)(out.data(), nullptr, all.data(),
                                                               by.data(), all.size(), 1);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const Float16 expected = to_float16(to_float(all[i]) * to_float(by[i]));
        if (!is_same(out[i], expected)) FAIL(table->name << ": " << i << " * " << by[i].bits);
      }
    }
  }
}

TEMPLATE_TEST_CASE("whole arrays are converted as single values are", "", KOLO_EVERY_TYPE) {
  constexpr ElementType kType = kElementTypeOf<TestType>;
  for (const reduce::Kernels* table : tables()) {
    if constexpr (!std::is_class_v<TestType> || sizeof(TestType) != 2) {
      CHECK(table->narrow(kType) == nullptr);
      CHECK(table->widen(kType) == nullptr);
    } else {
      const auto floats = operands<float>(5003, kSeed + 6);
      std::vector<TestType> narrow(floats.size());
      table->narrow(kType)(narrow.data(), floats.data(), floats.size());
      std::vector<float> wide(floats.size());
      table->widen(kType)(wide.data(), narrow.data(), floats.size());
      std::size_t right = 0;
      while (right < floats.size() && is_same(narrow[right], closed<TestType>(floats[right])) &&
             is_same(wide[right], to_float(narrow[right])))
        ++right;
      REQUIRE(right == floats.size());  // otherwise the index of the first wrong element
    }
  }
}

TEMPLATE_TEST_CASE("all vector widths give the same bits", "", KOLO_EVERY_TYPE) {
  const auto a = operands<TestType>(5000, kSeed + 4), b = operands<TestType>(5000, kSeed + 5);
  for (const ReduceOp op : kReduceOps) {
    if (!is_defined(kElementTypeOf<TestType>, op)) continue;
    std::vector<TestType> first(a.size()), out(a.size());
    const int divisor = op == ReduceOp::kAverage ? 3 : 1;
    for (const reduce::Kernels* table : tables()) {
      table->reduce(kElementTypeOf<TestType>, op)(out.data(), nullptr, a.data(), b.data(), a.size(),
                                                  divisor);
      if (table == &reduce::baseline()) first = out;
      std::size_t right = 0;
      while (right < a.size() && is_same(out[right], first[right])) ++right;
      REQUIRE(right == a.size());  // otherwise the index of the first wrong element
    }
  }
}

TEST_CASE("min and max order -0 below 0, in either order of operands") {
  for (const reduce::Kernels* table : tables()) {
    for (const bool is_first : {false, true}) {
      const std::vector<float> a(40, is_first ? -0.0F : 0.0F), b(40, is_first ? 0.0F : -0.0F);
      std::vector<float> out(40);
      for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
        table->reduce(ElementType::kFloat32, op)(out.data(), nullptr, a.data(), b.data(), 40, 1);
        for (const float value : out) REQUIRE(std::signbit(value) == (op == ReduceOp::kMin));
      }
    }
  }
}

}  // namespace kolo
