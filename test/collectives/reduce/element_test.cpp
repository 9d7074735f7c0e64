// Narrow floats compared with their definition in doubles: every code, and floats of every kind.
#include "collectives/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "test/support/catch.h"

namespace kolo {
namespace {

// The format of a type, and its conversion.
template <typename T>
struct Case;
template <>
struct Case<BFloat16> {
  static constexpr int kExponent = 8, kMantissa = 7;
  static constexpr bool kHasInfinity = true;
  static BFloat16 from(float value) { return to_bfloat16(value); }
};
template <>
struct Case<Float16> {
  static constexpr int kExponent = 5, kMantissa = 10;
  static constexpr bool kHasInfinity = true;
  static Float16 from(float value) { return to_float16(value); }
};
template <>
struct Case<Float8E4M3> {
  static constexpr int kExponent = 4, kMantissa = 3;
  static constexpr bool kHasInfinity = false;
  static Float8E4M3 from(float value) { return to_float8_e4m3(value); }
};
template <>
struct Case<Float8E5M2> {
  static constexpr int kExponent = 5, kMantissa = 2;
  static constexpr bool kHasInfinity = true;
  static Float8E5M2 from(float value) { return to_float8_e5m2(value); }
};

// The values of the non-negative codes from 0 on. After the last finite value comes one more: the
// value that the first special code would have as a number. A value overflows beyond the middle of
// the last two.
template <typename T>
class Model {
 public:
  Model() {
    const unsigned mantissas = 1U << kMantissa;
    const unsigned specials = kHasInfinity ? mantissas : 1;
    const unsigned finite = (1U << (kExponent + kMantissa)) - specials;
    for (unsigned code = 0; code <= finite; ++code) {
      const int exponent = static_cast<int>(code >> kMantissa);
      const auto mantissa = static_cast<double>(code % mantissas) / mantissas;
      values_.push_back(exponent == 0 ? std::ldexp(mantissa, 1 - kBias)
                                      : std::ldexp(1 + mantissa, exponent - kBias));
    }
  }

  unsigned first_special() const { return static_cast<unsigned>(values_.size()) - 1; }
  double value_of(unsigned code) const { return values_[code]; }

  // The non-negative code nearest to a value of at least 0; of two equally near codes, the even
  // one.
  unsigned nearest(double value) const {
    if (value >= values_.back()) return first_special();
    const auto above = std::upper_bound(values_.begin(), values_.end(), value);
    const auto code = static_cast<unsigned>(above - values_.begin()) - 1;
    const double down = value - values_[code], up = values_[code + 1] - value;
    if (down != up) return down < up ? code : code + 1;
    return code % 2 == 0 ? code : code + 1;
  }

 private:
  static constexpr int kExponent = Case<T>::kExponent, kMantissa = Case<T>::kMantissa;
  static constexpr bool kHasInfinity = Case<T>::kHasInfinity;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  std::vector<double> values_;
};

template <typename T>
void expect_rounded(const Model<T>& model, float value) {
  constexpr unsigned kSign = 1U << (sizeof(T) * 8 - 1);
  const T found = Case<T>::from(value);
  if (std::isnan(value)) {
    if (!std::isnan(to_float(found))) FAIL("NaN became " << to_float(found));
    if (std::signbit(to_float(found)) != std::signbit(value)) FAIL("NaN lost its sign");
    return;
  }
  const unsigned code = model.nearest(std::abs(static_cast<double>(value)));
  const unsigned expected = code | (std::signbit(value) ? kSign : 0);
  if (found.bits != expected)
    FAIL(value << " became code " << unsigned{found.bits} << ", not " << expected);
}

}  // namespace

TEMPLATE_TEST_CASE("every code has the value that its format defines", "", BFloat16, Float16,
                   Float8E4M3, Float8E5M2) {
  const Model<TestType> model;
  const unsigned magnitudes = 1U << (sizeof(TestType) * 8 - 1);
  for (unsigned code = 0; code < magnitudes; ++code) {
    TestType value, negative;
    value.bits = static_cast<decltype(value.bits)>(code);
    negative.bits = static_cast<decltype(value.bits)>(code | magnitudes);
    const float found = to_float(value);
    INFO("code " << code << " is " << found);
    if (code < model.first_special()) {
      REQUIRE(static_cast<double>(found) == model.value_of(code));
    } else if (code == model.first_special() && Case<TestType>::kHasInfinity) {
      REQUIRE(found == std::numeric_limits<float>::infinity());
    } else {
      REQUIRE(std::isnan(found));
    }
    REQUIRE(std::signbit(to_float(negative)));
    REQUIRE(std::isnan(found) == std::isnan(to_float(negative)));
    if (std::isnan(found)) continue;
    REQUIRE(to_float(negative) == -found);
    REQUIRE(Case<TestType>::from(found).bits == value.bits);
    REQUIRE(Case<TestType>::from(-found).bits == negative.bits);
  }
}

// Every upper half of a float, with lower halves around the rounding points of each format.
TEMPLATE_TEST_CASE("floats round to the nearest value, ties to even", "", BFloat16, Float16,
                   Float8E4M3, Float8E5M2) {
  const Model<TestType> model;
  std::set<std::uint32_t> lower;
  for (int bit = 0; bit < 16; ++bit) {
    for (const std::uint32_t around : {0U, 1U, 0xffffU}) {
      lower.insert(((1U << bit) + around) & 0xffffU);
      lower.insert(((3U << bit) + around) & 0xffffU);
    }
  }
  for (std::uint32_t upper = 0; upper <= 0xffffU; ++upper) {
    for (const std::uint32_t low : lower) {
      expect_rounded(model, std::bit_cast<float>(upper << 16 | low));
    }
  }
}

TEST_CASE("values that are too large become infinity, or NaN in float8_e4m3") {
  const float infinity = std::numeric_limits<float>::infinity();
  REQUIRE(to_float(to_float16(65519.0F)) == 65504.0F);
  REQUIRE(to_float(to_float16(65520.0F)) == infinity);
  REQUIRE(to_float(to_float8_e5m2(61439.0F)) == 57344.0F);
  REQUIRE(to_float(to_float8_e5m2(-61440.0F)) == -infinity);
  REQUIRE(to_float(to_float8_e4m3(464.0F)) == 448.0F);
  REQUIRE(to_float8_e4m3(464.1F).bits == 0x7f);
  REQUIRE(to_float8_e4m3(-infinity).bits == 0xff);
}

TEST_CASE("types and operations have distinct names, and existing ones keep their numbers") {
  std::set<std::string> names;
  for (const ElementType type : kElementTypes) names.emplace(to_string(type));
  for (const ReduceOp op : kReduceOps) names.emplace(to_string(op));
  for (const ReduceOp op : {ReduceOp::kScaledSum, ReduceOp::kUser}) names.emplace(to_string(op));
  REQUIRE(names.size() == std::size(kElementTypes) + std::size(kReduceOps) + 2);
  for (std::size_t i = 0; i < std::size(kElementTypes); ++i) {
    REQUIRE(static_cast<std::size_t>(kElementTypes[i]) == i);
  }
  for (std::size_t i = 0; i < std::size(kReduceOps); ++i) {
    REQUIRE(static_cast<std::size_t>(kReduceOps[i]) == i);
  }
  REQUIRE(static_cast<int>(ElementType::kInt64) == 4);
  REQUIRE(static_cast<int>(ReduceOp::kMax) == 3);
}

TEST_CASE("a scaled sum is defined for floats only, and a user function for no built-in type") {
  for (const ElementType type : kElementTypes) {
    REQUIRE(is_defined(type, ReduceOp::kScaledSum) == is_float(type));
    REQUIRE((reduce_kernel(type, ReduceOp::kScaledSum) != nullptr) == is_float(type));
    REQUIRE((multiply_kernel(type) != nullptr) == is_float(type));
    REQUIRE_FALSE(is_defined(type, ReduceOp::kUser));
    REQUIRE(reduce_kernel(type, ReduceOp::kUser) == nullptr);
  }
}

TEST_CASE("bitwise operations are defined for integers only") {
  STATIC_REQUIRE(is_defined(ElementType::kUint8, ReduceOp::kBitXor));
  STATIC_REQUIRE(is_defined(ElementType::kFloat16, ReduceOp::kProduct));
  STATIC_REQUIRE_FALSE(is_defined(ElementType::kFloat16, ReduceOp::kBitAnd));
  for (const ElementType type : kElementTypes) {
    for (const ReduceOp op : kReduceOps) {
      REQUIRE((reduce_kernel(type, op) != nullptr) == is_defined(type, op));
    }
  }
}

}  // namespace kolo
