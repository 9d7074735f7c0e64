// The reduction kernels of every vector width against plain arithmetic.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "collectives/element.h"
#include "collectives/reduce/kernels.h"
#include "test/support/catch.h"

namespace kolo {
namespace {

constexpr unsigned kSeed = 20;

std::vector<const reduce::Kernels*> tables() {
  std::vector<const reduce::Kernels*> found{&reduce::baseline()};
  for (const reduce::Kernels* table : {reduce::avx2(), reduce::avx512()}) {
    if (table != nullptr) found.push_back(table);
  }
  return found;
}

// How a type is written and read as a double; all values used here are exact in it.
template <typename T>
T make(double value) {
  return static_cast<T>(value);
}
template <>
BFloat16 make<BFloat16>(double value) {
  return to_bfloat16(static_cast<float>(value));
}
template <typename T>
double read(T value) {
  return static_cast<double>(value);
}
template <>
double read(BFloat16 value) {
  return static_cast<double>(to_float(value));
}

double expected(ReduceOp op, double a, double b, int divisor, bool is_integer) {
  double value = 0;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      value = a + b;
      break;
    case ReduceOp::kMin:
      value = std::min(a, b);
      break;
    case ReduceOp::kMax:
      value = std::max(a, b);
      break;
  }
  if (divisor > 1) value /= divisor;
  return is_integer ? std::trunc(value) : value;
}

enum class Alias { kNone, kOutIsLocal, kOutIsIncoming, kOutIsLocalCopyIsIncoming };

// One call on `count` elements that begin `shift` elements into their buffers; nothing around them
// may change.
template <typename T>
void check_pass(const reduce::Kernels& table, ReduceOp op, std::size_t count, std::size_t shift,
                int divisor, Alias alias) {
  constexpr bool kIsInteger = std::is_integral_v<T>;
  std::mt19937 random(kSeed);
  std::uniform_int_distribution<int> small(-8, 8);
  const T guard = make<T>(77);
  std::vector<T> local(count + shift + 8, guard), incoming(local), out(local), copy(local);
  for (std::size_t i = 0; i < count; ++i) {
    local[shift + i] = make<T>(small(random) * 4);
    incoming[shift + i] = make<T>(small(random) * 4);
  }
  const std::vector<T> a = local, b = incoming;
  T* o = (alias == Alias::kNone            ? out.data()
          : alias == Alias::kOutIsIncoming ? incoming.data()
                                           : local.data()) +
         shift;
  T* c = alias == Alias::kNone                       ? copy.data() + shift
         : alias == Alias::kOutIsLocalCopyIsIncoming ? incoming.data() + shift
                                                     : nullptr;
  table.reduce(kElementTypeOf<T>, op)(o, c, local.data() + shift, incoming.data() + shift, count,
                                      divisor);
  for (std::size_t i = 0; i < count; ++i) {
    const double want = expected(op, read(a[shift + i]), read(b[shift + i]), divisor, kIsInteger);
    if (read(o[i]) != read(make<T>(want)) ||
        (c != nullptr && std::memcmp(&c[i], &o[i], sizeof(T)))) {
      FAIL(table.name << " " << to_string(kElementTypeOf<T>) << " " << to_string(op) << " count "
                      << count << " shift " << shift << " divisor " << divisor << " element " << i
                      << ": " << read(o[i]) << ", expected " << want);
    }
  }
  for (std::size_t i = 0; i < 8; ++i) REQUIRE(read(o[count + i]) == 77.0);
  if (shift > 0) REQUIRE(read(*(o - 1)) == 77.0);
}

template <typename T>
void check_type() {
  for (const reduce::Kernels* table : tables()) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax}) {
      for (std::size_t count = 0; count < 140; count += count < 70 ? 1 : 23) {
        for (const Alias alias : {Alias::kNone, Alias::kOutIsLocal, Alias::kOutIsIncoming,
                                  Alias::kOutIsLocalCopyIsIncoming}) {
          check_pass<T>(*table, op, count, count % 5, op == ReduceOp::kAverage ? 4 : 1, alias);
        }
      }
    }
  }
}

TEST_CASE("float32 kernels agree with plain arithmetic at every length and alignment") {
  check_type<float>();
}
TEST_CASE("float64 kernels agree with plain arithmetic at every length and alignment") {
  check_type<double>();
}
TEST_CASE("bfloat16 kernels agree with plain arithmetic at every length and alignment") {
  check_type<BFloat16>();
}
TEST_CASE("int32 kernels agree with plain arithmetic at every length and alignment") {
  check_type<std::int32_t>();
}
TEST_CASE("int64 kernels agree with plain arithmetic at every length and alignment") {
  check_type<std::int64_t>();
}

TEST_CASE("an average over three divides, it does not multiply by a rounded third") {
  for (const reduce::Kernels* table : tables()) {
    float a = 2.0F;
    const float b = 5.0F;
    table->reduce(ElementType::kFloat32, ReduceOp::kAverage)(&a, nullptr, &a, &b, 1, 3);
    REQUIRE(a == 7.0F / 3.0F);
    std::int32_t i = -4;
    const std::int32_t j = -3;
    table->reduce(ElementType::kInt32, ReduceOp::kAverage)(&i, nullptr, &i, &j, 1, 3);
    REQUIRE(i == -2);
  }
}

TEST_CASE("integer sums wrap") {
  for (const reduce::Kernels* table : tables()) {
    std::int32_t a = std::numeric_limits<std::int32_t>::max();
    const std::int32_t one = 1;
    table->reduce(ElementType::kInt32, ReduceOp::kSum)(&a, nullptr, &a, &one, 1, 1);
    REQUIRE(a == std::numeric_limits<std::int32_t>::min());
  }
}

TEST_CASE("NaN in either place comes out of min and max") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const reduce::Kernels* table : tables()) {
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
      std::vector<float> a(40, 1.0F), b(40, 2.0F);
      a[3] = b[7] = b[35] = nan;
      table->reduce(ElementType::kFloat32, op)(a.data(), nullptr, a.data(), b.data(), a.size(), 1);
      for (const std::size_t i : {3, 7, 35}) REQUIRE(std::isnan(a[i]));
      REQUIRE(a[0] == (op == ReduceOp::kMin ? 1.0F : 2.0F));
    }
  }
}

TEST_CASE("bfloat16 rounds to nearest even and keeps NaN and infinity") {
  REQUIRE(to_float(to_bfloat16(1.0F)) == 1.0F);
  REQUIRE(to_float(to_bfloat16(1.0F + 1.0F / 256)) == 1.0F);               // a tie, to even
  REQUIRE(to_float(to_bfloat16(1.0F + 3.0F / 256)) == 1.0F + 4.0F / 256);  // a tie, to even
  REQUIRE(to_float(to_bfloat16(1.0F + 1.1F / 256)) == 1.0F + 2.0F / 256);
  REQUIRE(std::isnan(to_float(to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  REQUIRE(std::isinf(to_float(to_bfloat16(std::numeric_limits<float>::infinity()))));
  REQUIRE(std::isinf(to_float(to_bfloat16(std::numeric_limits<float>::max()))));
}

TEST_CASE("all vector widths give the same bits") {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  std::vector<float> a(1000), b(1000);
  for (float& value : a) value = normal(random);
  for (float& value : b) value = normal(random);
  std::vector<float> first;
  for (const reduce::Kernels* table : tables()) {
    std::vector<float> out(a.size());
    table->reduce(ElementType::kFloat32, ReduceOp::kAverage)(out.data(), nullptr, a.data(),
                                                             b.data(), a.size(), 3);
    if (first.empty()) first = out;
    REQUIRE(std::memcmp(first.data(), out.data(), out.size() * sizeof(float)) == 0);
  }
}

}  // namespace
}  // namespace kolo
