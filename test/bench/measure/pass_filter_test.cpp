// Selection of the passes of a measurement that belong together (bench/measure/pass_filter.h).
#include "bench/measure/pass_filter.h"

#include <initializer_list>
#include <string_view>
#include <vector>
#include "test/support/catch.h"

namespace kolo::bench {
namespace {

// Alternating passes of two libraries, between these probes.
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

TEST_CASE("all passes count if the cores stayed, and no pass is added") {
  for (const double us : {0.1, 0.5, 0.0}) {
    const PassFilter regimes = of_two({us, us, us, us, us});
    CHECK(regimes.counting(0) == Counts{true, true});
    CHECK(regimes.counting(1) == Counts{true, true});
    CHECK(regimes.goes_on(1, 2));
    CHECK_FALSE(regimes.goes_on(2, 2));
  }
}

TEST_CASE("passes between different probes, or with the rarer core distance, do not count") {
  //                         player:    0    1    0    1    0    1
  const PassFilter regimes = of_two({0.5, 0.5, 0.1, 0.1, 0.1, 0.12, 0.1});
  CHECK(regimes.counting(0) == Counts{false, true, true});
  CHECK(regimes.counting(1) == Counts{false, true, true});
  CHECK(regimes.distance().probes_us() == std::vector<double>{0.1, 0.1, 0.1, 0.12, 0.1});
  CHECK(std::string_view(regimes.distance().regime()) == "near");
}

TEST_CASE("the distance that counts is the one where the library with the fewest passes has most") {
  PassFilter regimes(2, false);
  regimes.probe(0.1);
  const auto turn = [&](std::size_t player, double probe_after_us) {
    regimes.took(player);
    regimes.probe(probe_after_us);
  };
  for (int i = 0; i < 3; ++i) turn(0, 0.1);  // near: three passes of library 0, none of library 1
  turn(1, 0.5);
  turn(0, 0.5);  // far: one pass each
  turn(1, 0.5);
  CHECK(regimes.counting(0) == Counts{false, false, false, true});
  CHECK(regimes.counting(1) == Counts{false, true});
  CHECK(std::string_view(regimes.distance().regime()) == "far");
}

TEST_CASE("a pass during which another program had a core does not count") {
  const PassFilter regimes = of_two({0.1, 0.1, 40, 0.1, 0.1, 0.1, 0.1});
  CHECK(regimes.counting(0) == Counts{true, false, true});
  CHECK(regimes.counting(1) == Counts{false, true, true});
  CHECK(std::string_view(regimes.distance().regime()) == "near");
}

TEST_CASE("all passes count as moved if no distance has a pass of every library") {
  const PassFilter moved = of_two({0.1, 0.1, 0.5});
  CHECK(moved.counting(0) == Counts{true});
  CHECK(moved.counting(1) == Counts{true});
  CHECK(std::string_view(moved.distance().regime()) == "moved");
  const PassFilter disturbed = of_two({40, 40, 40});
  CHECK(disturbed.counting(1) == Counts{true});
  CHECK(std::string_view(disturbed.distance().regime()) == "disturbed");
}

TEST_CASE("cores that moved get up to twice the passes, until enough of them count") {
  // two passes, no distance with both libraries
  const PassFilter none = of_two({0.1, 0.1, 0.5, 0.5, 0.1});
  CHECK(none.goes_on(2, 2));
  CHECK(none.goes_on(3, 2));
  CHECK_FALSE(none.goes_on(4, 2));
  const PassFilter one = of_two({0.1, 0.1, 0.1, 0.5, 0.5});
  CHECK_FALSE(one.goes_on(2, 2));  // three quarters of two, rounded down
  CHECK(one.goes_on(4, 4));
}

TEST_CASE("a requested number of iterations keeps all passes, wherever the cores were") {
  const PassFilter regimes = of_two({0.1, 0.1, 0.5, 0.5, 0.5}, true);
  CHECK(regimes.counting(0) == Counts{true, true});
  CHECK_FALSE(regimes.goes_on(2, 2));
  CHECK(std::string_view(regimes.distance().regime()) == "moved");
}

TEST_CASE("all iterations of counted passes are used, and the others are counted as left out") {
  const PassFilter regimes = of_two({0.5, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1});
  const SelectedPasses counted = regimes.count(0, {{1, 2, 3}, {4, 6}, {8}});
  CHECK(counted.times_us == std::vector<double>{4, 6, 8});
  CHECK(counted.medians_us == std::vector<double>{5, 8});
  CHECK(counted.left_out == 3);
}

}  // namespace kolo::bench
