// Patterns of the buffers: the right result passes in every type, and each kind of error is
// detected.
#include "bench/measure/pattern.h"

#include <cstring>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

namespace {

constexpr std::size_t kCount = 4099;  // a prime, and more than one block

std::vector<float> filled(int rank, const Pattern& pattern, std::size_t count = kCount) {
  std::vector<float> data(count);
  fill(data.data(), 0, count, rank, pattern);
  return data;
}

// The result of a right all-reduce by sum.
std::vector<float> summed(const Pattern& pattern, std::size_t count = kCount) {
  std::vector<float> sum(count);
  for (int rank = 0; rank < pattern.contributions; ++rank) {
    const auto part = filled(rank, pattern, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += part[i];
  }
  return sum;
}

std::uint64_t wrong_in(const std::vector<float>& data, const Pattern& pattern) {
  return count_wrong_reductions(data.data(), 0, data.size(), 0, pattern);
}

template <typename T>
void require_right_result(ReduceOp op, int ranks) {
  const Pattern pattern{kElementTypeOf<T>, op, ranks, 7};
  require_exact(pattern);
  std::vector<T> result(kCount), part(kCount);
  fill(result.data(), 0, kCount, 0, pattern);
  const ReduceKernel reduce = reduce_kernel(pattern.type, op);
  for (int rank = 1; rank < ranks; ++rank) {
    fill(part.data(), 0, kCount, rank, pattern);
    reduce(result.data(), nullptr, result.data(), part.data(), kCount,
           rank + 1 == ranks && op == ReduceOp::kAverage ? ranks : 1);
  }
  REQUIRE(count_wrong_reductions(result.data(), 0, kCount, 0, pattern) == 0);
}

}  // namespace

TEMPLATE_TEST_CASE("the right result passes for every type and operation", "", float, double,
                   BFloat16, Float16, Float8E4M3, Float8E5M2, std::int8_t, std::int16_t,
                   std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
                   std::uint64_t) {
  for (const ReduceOp op : kReduceOps) {
    for (const int ranks : {2, 3, 4, 7}) {
      if (!is_defined(kElementTypeOf<TestType>, op)) continue;
      // the average is not exact
      if (op == ReduceOp::kAverage && sizeof(TestType) == 1 && ranks > 2) continue;
      INFO(to_string(op) << " of " << ranks << " ranks");
      require_right_result<TestType>(op, ranks);
    }
  }
}

TEST_CASE("one wrong element is found at any position") {
  const Pattern pattern{ElementType::kFloat32, ReduceOp::kSum, 3, 1};
  const auto place = GENERATE(std::size_t{0}, std::size_t{1023}, std::size_t{1024}, kCount - 1);
  auto data = summed(pattern);
  REQUIRE(wrong_in(data, pattern) == 0);
  data[place] += 1;
  REQUIRE(wrong_in(data, pattern) == 1);
}

TEST_CASE("a misplaced segment is found, also at powers of two") {
  const Pattern pattern{ElementType::kFloat32, ReduceOp::kSum, 2, 3};
  const auto distance = GENERATE(1, 16, 256, 1024, 16 * 1024);
  const std::size_t count = 40'000;
  auto data = summed(pattern, count);
  const auto right = data;
  std::memcpy(data.data(), right.data() + distance, 1000 * sizeof(float));
  REQUIRE(wrong_in(data, pattern) > 900);
}

TEST_CASE("the result of the iteration before is found, and a rank counted twice") {
  const Pattern now{ElementType::kFloat32, ReduceOp::kSum, 2, 11};
  const Pattern before{ElementType::kFloat32, ReduceOp::kSum, 2, 10};
  REQUIRE(wrong_in(summed(before), now) > kCount * 9 / 10);
  auto twice = filled(0, now);
  for (float& x : twice) x += x;
  REQUIRE(wrong_in(twice, now) > kCount * 9 / 10);
}

TEST_CASE("copies are compared with the owner's data") {
  const Pattern pattern{ElementType::kInt64, ReduceOp::kAverage, 4, 5};
  std::vector<std::int64_t> data(kCount);
  fill(data.data(), 100, kCount, 2, pattern);
  REQUIRE(count_wrong_copies(data.data(), 100, kCount, 2, pattern) == 0);
  REQUIRE(count_wrong_copies(data.data(), 100, kCount, 3, pattern) > kCount * 9 / 10);
  REQUIRE(count_wrong_copies(data.data(), 101, kCount, 2, pattern) > kCount * 9 / 10);
}

TEST_CASE("sums that a type cannot hold exactly are refused") {
  REQUIRE_NOTHROW(require_exact({ElementType::kBFloat16, ReduceOp::kSum, 256, 0}));
  REQUIRE_THROWS_AS(require_exact({ElementType::kBFloat16, ReduceOp::kSum, 257, 0}),
                    std::invalid_argument);
  REQUIRE_THROWS_AS(require_exact({ElementType::kBFloat16, ReduceOp::kAverage, 17, 0}),
                    std::invalid_argument);
  REQUIRE_NOTHROW(require_exact({ElementType::kFloat32, ReduceOp::kSum, 1024, 0}));
}
