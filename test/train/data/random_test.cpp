// Random numbers: known answers of the algorithm's authors, and rough checks of distributions.
#include "train/data/random.h"

#include <set>
#include <stdexcept>
#include <vector>

#include "test/support/catch.h"

namespace kolo::train {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers of Random123, the authors' own library (kat_vectors).
TEST_CASE("philox matches its authors' known answers") {
  CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) ==
        Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t kOnes = 0xffffffff;
  CHECK(philox4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a sequence depends only on seed, purpose and index") {
  const auto first = [](std::uint64_t seed, Purpose purpose, std::uint64_t index) {
    Random random(seed, purpose, index);
    for (int i = 0; i < 6; ++i) random.bits();  // more than one block
    return random.bits();
  };
  const std::uint32_t one = first(1, Purpose::test, 0);
  CHECK(one == first(1, Purpose::test, 0));
  const std::set<std::uint32_t> all = {one,
                                       first(2, Purpose::test, 0),
                                       first(std::uint64_t{1} << 32, Purpose::test, 0),
                                       first(1, Purpose::permutation, 0),
                                       first(1, Purpose::test, 1),
                                       first(1, Purpose::test, std::uint64_t{1} << 32)};
  CHECK(all.size() == 6);
}

TEST_CASE("below() reaches every value equally often") {
  Random random(7, Purpose::test, 0);
  constexpr std::uint32_t kBound = 7;
  std::vector<int> counts(kBound);
  for (int i = 0; i < 70'000; ++i) ++counts[random.below(kBound)];
  for (const int count : counts) CHECK(count == Approx(10'000).margin(500));
  CHECK(random.below(1) == 0);
  CHECK_THROWS_AS(random.below(0), std::invalid_argument);
}

TEST_CASE("uniform() stays in its interval and has its mean") {
  Random random(7, Purpose::test, 1);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const float value = random.uniform(-2, 4);
    REQUIRE(value >= -2);
    REQUIRE(value < 4);
    sum += value;
  }
  CHECK(sum / 10'000 == Approx(1).margin(0.1));
}

}  // namespace
}  // namespace kolo::train
