// A straggler sleeps in proportion to its computing.
#include "train/loop/straggler.h"

#include <vector>

#include "test/support/catch.h"

namespace {

using namespace kolo::train;

// Sleeps of a straggler, and by how much each was too long.
struct Sleeps {
  std::vector<double> asked;
  double too_long = 0;

  Straggler straggler(double factor) {
    return Straggler(factor, [this](double seconds) {
      asked.push_back(seconds);
      return seconds + too_long;
    });
  }
};

}  // namespace

TEST_CASE("a straggler sleeps factor - 1 times as long as it computed") {
  Sleeps sleeps;
  Straggler straggler = sleeps.straggler(1.5);
  straggler.computed(0.010);
  REQUIRE(sleeps.asked.size() == 1);
  CHECK(sleeps.asked[0] == Approx(0.005));
  straggler.settle();
  CHECK(sleeps.asked.size() == 1);
}

TEST_CASE("short computing adds up until a sleep is long enough, and the rest is slept at last") {
  Sleeps sleeps;
  Straggler straggler = sleeps.straggler(2);
  for (int i = 0; i < 3; ++i) straggler.computed(0.0004);
  REQUIRE(sleeps.asked.size() == 1);
  CHECK(sleeps.asked[0] == Approx(0.0012));
  straggler.computed(0.0003);
  CHECK(sleeps.asked.size() == 1);
  straggler.settle();
  REQUIRE(sleeps.asked.size() == 2);
  CHECK(sleeps.asked[1] == Approx(0.0003));
}

TEST_CASE("a sleep that was too long shortens the next one") {
  Sleeps sleeps;
  sleeps.too_long = 0.002;
  Straggler straggler = sleeps.straggler(2);
  straggler.computed(0.010);
  straggler.computed(0.010);
  REQUIRE(sleeps.asked.size() == 2);
  CHECK(sleeps.asked[1] == Approx(0.008));
}

TEST_CASE("a factor of 1 does not sleep") {
  Sleeps sleeps;
  Straggler straggler = sleeps.straggler(1);
  straggler.computed(1);
  straggler.settle();
  CHECK(sleeps.asked.empty());
}
