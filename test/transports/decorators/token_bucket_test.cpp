// The token bucket, on simulated times.
#include "transports/decorators/token_bucket.h"

#include <random>

#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::decorators;
using namespace std::chrono_literals;

namespace {

const Clock::time_point kStart = Clock::time_point(1000s);

TransitTimes at(std::chrono::nanoseconds first) { return {kStart + first, kStart + first}; }

std::chrono::nanoseconds since_start(Clock::time_point time) { return time - kStart; }

}  // namespace

TEST_CASE("a bucket without a rate passes everything at once") {
  TokenBucket bucket;
  const TransitTimes coming{kStart, kStart + 5us};
  CHECK(bucket.pass(coming, 1 << 30) == coming);
  CHECK(bucket.pass(at(0ns), 1) == at(0ns));
}

TEST_CASE("a wire takes time for every byte, and a segment waits for the one before") {
  TokenBucket wire(125'000'000);  // 1 Gb/s: 8 ns a byte
  CHECK(since_start(wire.pass(at(0us), 1000).last) == 8us);
  CHECK(since_start(wire.pass(at(0us), 1000).last) == 16us);
  const TransitTimes third = wire.pass(at(10us), 500);
  CHECK(since_start(third.first) == 16us);
  CHECK(since_start(third.last) == 20us);
  CHECK(since_start(wire.pass(at(100us), 1).last) == 100'008ns);  // idle time is not saved
}

TEST_CASE("a segment that arrives no faster than the wire's rate is not delayed") {
  TokenBucket wire(125'000'000);
  const TransitTimes coming{kStart, kStart + 8us};
  CHECK(wire.pass(coming, 1000) == coming);
  const TransitTimes slower{kStart + 8us, kStart + 48us};
  CHECK(wire.pass(slower, 1000) == slower);
}

TEST_CASE("two flows of full rate on one wire get half of it each") {
  TokenBucket wire(125'000'000);
  TransitTimes last{};
  for (int i = 0; i < 100; ++i) {
    const auto first = kStart + i * 8us;
    wire.pass({first, first + 8us}, 1000);
    last = wire.pass({first, first + 8us}, 1000);
  }
  CHECK(since_start(last.last) == 1600us);
}

TEST_CASE("saved tokens let a burst pass at once") {
  TokenBucket bucket(1'000'000, 5000);  // a byte per us
  CHECK(bucket.pass(at(0us), 5000) == at(0us));
  CHECK(since_start(bucket.pass(at(0us), 1000).last) == 1000us);
  CHECK(since_start(bucket.pass(at(3000us), 2500).last) == 3500us);  // 2000 saved
  CHECK(bucket.pass(at(10s), 5000) == at(10s));
  CHECK(since_start(bucket.pass(at(10s), 5000).last) == 10s + 5ms);  // at most 5000
}

TEST_CASE("rounding errors do not add up: the long-term rate is exact") {
  TokenBucket wire(3'000'000'000);  // a third of a nanosecond per byte
  TransitTimes last{};
  for (int i = 0; i < 30'000; ++i) last = wire.pass(at(0ns), 1);
  CHECK(since_start(last.last) == 10us);
}

TEST_CASE("no time window passes more than its tokens and the burst") {
  constexpr std::uint64_t kRate = 10'000'000;
  constexpr std::uint64_t kBurst = 30'000;
  const unsigned seed = 20261121;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  TokenBucket bucket(kRate, kBurst);
  std::vector<std::pair<std::chrono::nanoseconds, std::size_t>> passed;
  std::chrono::nanoseconds now{0};
  for (int i = 0; i < 400; ++i) {
    now += std::chrono::nanoseconds(random() % 2'000'000);
    const std::size_t bytes = random() % 20'000;
    passed.emplace_back(since_start(bucket.pass(at(now), bytes).last), bytes);
  }
  for (std::size_t from = 0; from < passed.size(); ++from) {
    std::size_t bytes = 0;
    for (std::size_t to = from; to < passed.size(); ++to) {
      bytes += passed[to].second;
      const double window =
          std::chrono::duration<double>(passed[to].first - passed[from].first).count();
      REQUIRE(static_cast<double>(bytes) <=
              static_cast<double>(kBurst + passed[from].second) + window * kRate + 1);
    }
  }
}
