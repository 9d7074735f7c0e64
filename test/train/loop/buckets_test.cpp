// Arithmetic of buckets: they cover the arena, in order, and keep parameters whole.
#include "train/loop/buckets.h"

#include "test/support/catch.h"

namespace {

using namespace kolo::train;
using kolo::tensor::Range;

// Ranges of parameters with these lengths, each beginning on a multiple of 16 elements.
std::vector<Range> lay_out(const std::vector<std::int64_t>& lengths, std::int64_t& end) {
  std::vector<Range> ranges;
  end = 0;
  for (const std::int64_t length : lengths) {
    ranges.push_back({end, length});
    end += (length + 15) / 16 * 16;
  }
  return ranges;
}

}  // namespace

TEST_CASE("buckets cover the arena and keep parameters whole and in order") {
  std::int64_t elements = 0;
  const auto ranges = lay_out({10, 2048, 2048, 64, 100, 3, 3, 5000, 1}, elements);
  for (const std::int64_t bytes : {1, 64, 4096, 10'000, 1 << 20}) {
    const auto buckets = plan_buckets(ranges, elements, {bytes, bytes});
    std::int64_t place = 0;
    int parameter = 0;
    for (const Bucket& bucket : buckets) {
      CHECK(bucket.range.begin == place);
      CHECK(bucket.first_parameter == parameter);
      CHECK(bucket.parameters > 0);
      place = bucket.range.end();
      parameter += bucket.parameters;
    }
    CHECK(place == elements);
    CHECK(parameter == static_cast<int>(ranges.size()));
  }
}

TEST_CASE(
    "a bucket ends with the parameter that brings it to its size, and the first has its own size") {
  std::int64_t elements = 0;
  const auto ranges = lay_out({256, 256, 256, 256, 256}, elements);  // 1 KiB each
  const auto buckets = plan_buckets(ranges, elements, {1, 2048});
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].parameters == 1);
  CHECK(buckets[1].parameters == 2);
  CHECK(buckets[2].parameters == 2);
}

TEST_CASE("a parameter larger than a bucket is a bucket of its own") {
  std::int64_t elements = 0;
  const auto ranges = lay_out({100'000, 16}, elements);
  CHECK(plan_buckets(ranges, elements, {64, 64}).size() == 2);
}

TEST_CASE("ranges out of order and empty sizes are rejected") {
  const std::vector<Range> reversed{{16, 16}, {0, 16}};
  CHECK_THROWS_AS(plan_buckets(reversed, 32, {64, 64}), std::invalid_argument);
  const std::vector<Range> one{{0, 16}};
  CHECK_THROWS_AS(plan_buckets(one, 16, {0, 64}), std::invalid_argument);
}
