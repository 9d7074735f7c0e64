// Plans of keys: shares cut into keys of bounded length, in order of priority.
#include <numeric>
#include <random>
#include <vector>

#include "collectives/key_server.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

std::size_t elements_of(const KeyPlan& plan, int server) {
  std::size_t sum = 0;
  for (const Key& key : plan.keys) sum += key.server == server ? key.count : 0;
  return sum;
}

}  // namespace

TEST_CASE("a key plan cuts uneven shares into keys that cover the arena once") {
  const std::size_t longest = GENERATE(std::size_t{1}, std::size_t{3}, std::size_t{1000});
  const std::vector<KeyRange> ranges = {{10, {7, 0, 1}}, {0, {3, 4, 3}}, {18, {0, 0, 0}}};
  const std::vector<int> servers = {4, 2, 7};
  const KeyPlan plan = plan_keys(ranges, servers, longest);
  CHECK(plan.elements == 18);
  std::vector<int> covered(18);
  for (const Key& key : plan.keys) {
    CHECK(key.count >= 1);
    CHECK(key.count <= longest);
    for (std::size_t i = 0; i < key.count; ++i) ++covered[key.first + i];
  }
  CHECK(covered == std::vector<int>(18, 1));
  CHECK(elements_of(plan, 4) == 10);
  CHECK(elements_of(plan, 2) == 4);
  CHECK(elements_of(plan, 7) == 4);
  // The first range has the first keys.
  REQUIRE(plan.first_keys.size() == 4);
  for (std::size_t key = 0; key < plan.keys.size(); ++key)
    CHECK((plan.keys[key].first >= 10) == (key < plan.first_keys[1]));
  CHECK(plan.first_keys[2] == plan.keys.size());
  CHECK(plan.first_keys[3] == plan.keys.size());
}

TEST_CASE("keys of a share have at most 4 MB and nearly equal lengths") {
  const KeyPlan plan = plan_keys(std::vector<KeyRange>{{0, {2'500'001}}}, std::vector<int>{0});
  REQUIRE(plan.keys.size() == 3);
  for (const Key& key : plan.keys) {
    CHECK(key.count * sizeof(float) <= 4'000'000);
    CHECK(key.count >= 833'333);
  }
}

TEST_CASE("a key plan may be empty") {
  CHECK(plan_keys(std::vector<KeyRange>{}, std::vector<int>{0}).keys.empty());
  CHECK(plan_keys(std::vector<KeyRange>{{0, {0, 0}}}, std::vector<int>{0, 1}).keys.empty());
}

TEST_CASE("an impossible key plan is refused") {
  const std::vector<int> two = {0, 1};
  CHECK_THROWS_AS(plan_keys(std::vector<KeyRange>{{0, {1}}}, two), std::invalid_argument);
  CHECK_THROWS_AS(plan_keys(std::vector<KeyRange>{{0, {1, 1}}}, two, 0), std::invalid_argument);
  CHECK_THROWS_AS(plan_keys(std::vector<KeyRange>{{4, {2, 2}}, {0, {3, 2}}}, two),
                  std::invalid_argument);
  CHECK_THROWS_AS(plan_keys(std::vector<KeyRange>{{0, {1, 1}}}, std::vector<int>{1, 1}),
                  std::invalid_argument);
  CHECK_THROWS_AS(plan_keys(std::vector<KeyRange>{}, std::vector<int>{}), std::invalid_argument);
}

}  // namespace kolo::test
