// Quantiles compared with NumPy's, and factors between algbw and busbw compared with nccl-tests'.
#include "bench/measure/statistics.h"

#include <cmath>

#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

TEST_CASE("quantiles are interpolated between neighbors, as in NumPy") {
  REQUIRE(quantile({3, 1, 2}, 0.5) == Approx(2));
  REQUIRE(quantile({4, 1, 2, 3}, 0.5) == Approx(2.5));
  REQUIRE(quantile({10, 20, 30, 40, 50}, 0.1) == Approx(14));
  REQUIRE(quantile({10, 20, 30, 40, 50}, 0.9) == Approx(46));
  REQUIRE(quantile({7}, 0.9) == Approx(7));
  REQUIRE(std::isnan(quantile({}, 0.5)));
}

TEST_CASE("one slow iteration does not change the median") {
  const Quantiles found = quantiles({1, 1, 1, 1, 1, 1, 1, 1, 1, 1000});
  REQUIRE(found.median == Approx(1));
  REQUIRE(found.p10 == Approx(1));
  REQUIRE(average({1, 1, 1, 1, 1, 1, 1, 1, 1, 1000}) == Approx(100.9));
}

TEST_CASE("bus factors are those of nccl-tests") {
  REQUIRE(bus_factor(Collective::kAllReduce, 2, 0) == Approx(1.0));
  REQUIRE(bus_factor(Collective::kAllReduce, 4, 0) == Approx(1.5));
  REQUIRE(bus_factor(Collective::kReduceScatter, 4, 0) == Approx(0.75));
  REQUIRE(bus_factor(Collective::kAllGather, 4, 0) == Approx(0.75));
  REQUIRE(bus_factor(Collective::kBroadcast, 4, 0) == Approx(1.0));
}

TEST_CASE("a parameter server's bus factor follows its busiest link") {
  REQUIRE(bus_factor(Collective::kPushPull, 4, 0) ==
          Approx(1.5));  // servers everywhere: as an all-reduce
  REQUIRE(bus_factor(Collective::kPushPull, 4, 1) ==
          Approx(3.0));  // one server answers three workers
  REQUIRE(bus_factor(Collective::kPushPull, 4, 2) ==
          Approx(1.0));  // two workers send half of their data to each server
  // the only worker pushes everything
  REQUIRE(bus_factor(Collective::kPushPull, 4, 3) == Approx(1.0));
}

TEST_CASE("bandwidth is bytes per nanosecond, and empty if no time passed") {
  REQUIRE(gigabytes_per_second(1'000'000, 1000) == Approx(1));
  REQUIRE(gigabytes_per_second(8, 0) == Approx(0));
}
