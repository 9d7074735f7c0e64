// Which turns of a measurement belong together (bench/measure/pass_filter.h).
#include "bench/measure/pass_filter.h"

#include <initializer_list>
#include <string_view>
#include <vector>
#include "test/support/catch.h"

namespace kolo::bench {
namespace {

// Two players' turns in turn, between these probes.
PassFilter of_two(std::initializer_list<double> probes_us, bool keeps_all = false) {
  PassFilter regimes(2, keeps_all);
  std::size_t at = 0;
  for (const double us : probes_us) {
    if (at > 0) regimes.took((at - 1) % 2);
    regimes.probe(us);
    ++at;
  }
  return regimes;
}

using Counts = std::vector<bool>;

}  // namespace

TEST_CASE("where cores stood still every turn counts, and there is no pass more than asked for") {
  for (const double us : {0.1, 0.5, 0.0}) {
    const PassFilter regimes = of_two({us, us, us, us, us});
    CHECK(regimes.counting(0) == Counts{true, true});
    CHECK(regimes.counting(1) == Counts{true, true});
    CHECK(regimes.goes_on(1, 2));
    CHECK_FALSE(regimes.goes_on(2, 2));
  }
}

TEST_CASE("turns between unlike probes, and those of the rarer distance, do not count") {
  //                         player:    0    1    0    1    0    1
  const PassFilter regimes = of_two({0.5, 0.5, 0.1, 0.1, 0.1, 0.12, 0.1});
  CHECK(regimes.counting(0) == Counts{false, true, true});
  CHECK(regimes.counting(1) == Counts{false, true, true});
  CHECK(regimes.distance().probes_us() == std::vector<double>{0.1, 0.1, 0.1, 0.12, 0.1});
  CHECK(std::string_view(regimes.distance().regime()) == "near");
}

TEST_CASE("what counts is what the player with the fewest turns has most of") {
  PassFilter regimes(2, false);
  regimes.probe(0.1);
  const auto turn = [&](std::size_t player, double probe_after_us) {
    regimes.took(player);
    regimes.probe(probe_after_us);
  };
  for (int i = 0; i < 3; ++i) turn(0, 0.1);  // near: three of player 0, none of player 1
  turn(1, 0.5);
  turn(0, 0.5);  // far: one each
  turn(1, 0.5);
  CHECK(regimes.counting(0) == Counts{false, false, false, true});
  CHECK(regimes.counting(1) == Counts{false, true});
  CHECK(std::string_view(regimes.distance().regime()) == "far");
}

TEST_CASE("a turn during which another program had a core does not count") {
  const PassFilter regimes = of_two({0.1, 0.1, 40, 0.1, 0.1, 0.1, 0.1});
  CHECK(regimes.counting(0) == Counts{true, false, true});
  CHECK(regimes.counting(1) == Counts{false, true, true});
  CHECK(std::string_view(regimes.distance().regime()) == "near");
}

TEST_CASE(
    "where no distance has a turn of every player all count, and the row says that cores moved") {
  const PassFilter moved = of_two({0.1, 0.1, 0.5});
  CHECK(moved.counting(0) == Counts{true});
  CHECK(moved.counting(1) == Counts{true});
  CHECK(std::string_view(moved.distance().regime()) == "moved");
  const PassFilter disturbed = of_two({40, 40, 40});
  CHECK(disturbed.counting(1) == Counts{true});
  CHECK(std::string_view(disturbed.distance().regime()) == "disturbed");
}

TEST_CASE("cores that moved get up to as many passes again, until enough turns count") {
  const PassFilter none = of_two({0.1, 0.1, 0.5, 0.5, 0.1});  // two passes, nothing of both
  CHECK(none.goes_on(2, 2));
  CHECK(none.goes_on(3, 2));
  CHECK_FALSE(none.goes_on(4, 2));
  const PassFilter one = of_two({0.1, 0.1, 0.1, 0.5, 0.5});
  CHECK_FALSE(one.goes_on(2, 2));  // three quarters of two, rounded down
  CHECK(one.goes_on(4, 4));
}

TEST_CASE("who asked for a number of iterations gets all of them, wherever the cores were") {
  const PassFilter regimes = of_two({0.1, 0.1, 0.5, 0.5, 0.5}, true);
  CHECK(regimes.counting(0) == Counts{true, true});
  CHECK_FALSE(regimes.goes_on(2, 2));
  CHECK(std::string_view(regimes.distance().regime()) == "moved");
}

TEST_CASE("of turns that count all iterations do, and of the others their number is kept") {
  const PassFilter regimes = of_two({0.5, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1});
  const SelectedPasses counted = regimes.count(0, {{1, 2, 3}, {4, 6}, {8}});
  CHECK(counted.times_us == std::vector<double>{4, 6, 8});
  CHECK(counted.medians_us == std::vector<double>{5, 8});
  CHECK(counted.left_out == 3);
}

}  // namespace kolo::bench
