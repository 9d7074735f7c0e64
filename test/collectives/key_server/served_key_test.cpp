// Rules of a key at its server, without messages: the order of sums, when workers are answered,
// and what is dropped, under random orders of arrival.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "collectives/key_server/ordered_sum.h"
#include "collectives/key_server/served_key.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using key_server::OrderedSum;
using key_server::ServedKey;
using Kind = Consistency::Kind;

constexpr std::size_t kCount = 5;

std::shared_ptr<float[]> filled(std::size_t count, const std::function<float(std::size_t)>& value) {
  auto memory = std::make_shared<float[]>(count);
  for (std::size_t i = 0; i < count; ++i) memory[i] = value(i);
  return memory;
}

// A key whose update adds the gradients to the values.
struct Served {
  Served(std::size_t workers, Consistency rule, std::int64_t first_iteration = 0)
      : ranks(workers),
        key(7, values, ranks, {.consistency = rule, .first_iteration = first_iteration}, update,
            statistics) {
    std::iota(ranks.begin(), ranks.end(), 1);
  }

  // A whole gradient of equal elements.
  void push(std::size_t worker, std::int64_t iteration, float element, double samples = 1) {
    REQUIRE(key.fault_of_push(worker, iteration).empty());
    key.begin(worker, iteration, filled(kCount, [&](std::size_t) { return element; }), samples);
    key.arrive(worker, 2);
    key.arrive(worker, kCount);
  }

  std::vector<int> ranks;
  std::vector<float> values = std::vector<float>(kCount, 0.0F);
  std::vector<KeyUpdate> updates;
  KeyUpdateFunction update = [this](const KeyUpdate& one) {
    updates.push_back(one);
    for (std::size_t i = 0; i < one.values.size(); ++i) one.values[i] += one.gradient[i];
  };
  KeyServerStatistics statistics;
  ServedKey key;
};

std::uint64_t total(const std::vector<std::uint64_t>& histogram) {
  return std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0});
}

}  // namespace

TEST_CASE("a sum has the order of the ranks whatever the order of arrival") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  constexpr std::size_t kWorkers = 5;
  constexpr std::size_t kLength = 1000;
  std::uniform_real_distribution<float> exponent(-20, 20);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::shared_ptr<float[]>> gradients;
    for (std::size_t w = 0; w < kWorkers; ++w)
      gradients.push_back(
          filled(kLength, [&](std::size_t) { return std::exp2(exponent(random)); }));
    const std::size_t absent = random() % (kWorkers + 1);  // of this number: none
    std::vector<float> expected;
    for (std::size_t i = 0; i < kLength; ++i) {
      float sum = 0;
      bool is_first = true;
      for (std::size_t w = 0; w < kWorkers; ++w) {
        if (w == absent) continue;
        sum = is_first ? gradients[w][i] : sum + gradients[w][i];
        is_first = false;
      }
      expected.push_back(sum);
    }

    OrderedSum sum(kWorkers, kLength);
    std::vector<std::size_t> arrived(kWorkers, 0);
    std::vector<bool> has_begun(kWorkers, false);
    while (!sum.is_decided()) {
      const std::size_t w = random() % kWorkers;
      if (w == absent) {
        if (sum.is_awaited(w)) sum.leave_out(w);
      } else if (!has_begun[w]) {
        has_begun[w] = true;
        sum.begin(w, gradients[w], 2);
      } else if (arrived[w] < kLength) {
        arrived[w] = std::min(kLength, arrived[w] + random() % 400);
        sum.arrive(w, arrived[w]);
      }
      if (random() % 2 == 0) sum.advance();
    }
    sum.advance();
    REQUIRE(std::equal(expected.begin(), expected.end(), sum.values()));
    REQUIRE(sum.samples() == 2.0 * static_cast<double>(sum.complete()));
  }
}

TEST_CASE("a synchronous iteration ends with the last worker's gradient") {
  Served served(3, {});
  served.push(2, 0, 4);
  served.push(0, 0, 1);
  CHECK(served.updates.empty());
  CHECK_FALSE(served.key.may_answer(2));
  served.push(1, 0, 2);
  REQUIRE(served.updates.size() == 1);
  CHECK(served.values == std::vector<float>(kCount, 7));
  CHECK(served.updates[0].gradients == 3);
  CHECK(served.updates[0].samples == 3);
  CHECK(served.updates[0].worker == kNoPeer);
  for (std::size_t worker = 0; worker < 3; ++worker) CHECK(served.key.may_answer(worker));
}

TEST_CASE("a worker that skips an iteration, or has finished, does not hold it up") {
  Served served(3, {}, 10);
  served.push(0, 10, 1);
  served.push(1, 11, 2);
  CHECK(served.updates.empty());
  served.key.finish(2);
  REQUIRE(served.updates.size() == 1);
  CHECK(served.updates[0].gradients == 1);
  CHECK(served.key.may_answer(0));
  CHECK_FALSE(served.key.may_answer(1));
  served.key.finish(0);
  CHECK(served.updates.size() == 2);
  CHECK(served.key.may_answer(1));
}

TEST_CASE("an iteration that goes backwards is a fault") {
  const auto kind = GENERATE(Kind::kSynchronous, Kind::kAsynchronous, Kind::kBackup);
  Served served(2, {kind, 0}, 3);
  CHECK(served.key.fault_of_push(0, 2).find("iteration 2 of key 7") != std::string::npos);
  served.push(0, 5, 1);
  CHECK(served.key.fault_of_push(0, 5).find("iteration 6 is the first") != std::string::npos);
  CHECK(served.key.fault_of_push(0, 6).empty());
  CHECK(served.key.fault_of_push(1, 3).empty());
}

TEST_CASE("asynchronous gradients are applied at once, and staleness counts missed updates") {
  Served served(2, {Kind::kAsynchronous, 0});
  for (int i = 0; i < 3; ++i) {
    served.push(0, i, 1);
    CHECK(served.key.may_answer(0));
    served.key.note_answer(0);
  }
  served.push(1, 0, 1);
  REQUIRE(served.updates.size() == 4);
  CHECK(served.updates[3].worker == 2);
  CHECK(served.statistics.staleness == std::vector<std::uint64_t>{3, 0, 0, 1});
  CHECK(served.statistics.lead == std::vector<std::uint64_t>{2, 1, 1});
}

TEST_CASE("an iteration far ahead is counted as the longest lead") {
  Served served(2, {Kind::kAsynchronous, 0});
  served.push(0, std::int64_t{1} << 60, 1);
  REQUIRE(served.statistics.lead.size() == kLongestLag + 1);
  CHECK(served.statistics.lead.back() == 1);
}

TEST_CASE("no worker gets more than S iterations ahead of the slowest") {
  const int bound = GENERATE(0, 1, 2, 5);
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  constexpr std::size_t kWorkers = 4;
  Served served(kWorkers, {Kind::kBounded, bound});
  std::vector<std::int64_t> next(kWorkers, 0);
  std::vector<bool> is_waiting(kWorkers, false);
  std::size_t refused = 0;
  // Workers of very different speed; the slowest changes.
  for (int step = 0; step < 4000; ++step) {
    const std::size_t slow = static_cast<std::size_t>(step) / 500 % kWorkers;
    const std::size_t worker = random() % kWorkers;
    if (worker == slow && random() % 20 != 0) continue;
    is_waiting[worker] = is_waiting[worker] && !served.key.may_answer(worker);
    const std::int64_t lead = next[worker] - *std::ranges::min_element(next);
    if (is_waiting[worker]) {
      REQUIRE(lead > bound);
      REQUIRE_FALSE(served.key.fault_of_push(worker, next[worker]).empty());
      ++refused;
      continue;
    }
    REQUIRE(lead <= bound);
    served.push(worker, next[worker]++, 1);
    is_waiting[worker] = true;
  }
  CHECK(refused > 0);
  REQUIRE(served.statistics.lead.size() == static_cast<std::size_t>(bound) + 1);
  CHECK(served.statistics.lead.back() > 0);
  CHECK(served.statistics.dropped == 0);
  if (bound > 0) CHECK(total(served.statistics.staleness) == served.updates.size());
}

TEST_CASE("with backup workers an iteration ends without the last gradients, which are dropped") {
  Served served(3, {Kind::kBackup, 1});
  served.push(2, 0, 4, 10);
  served.push(1, 0, 2, 20);
  REQUIRE(served.updates.size() == 1);
  CHECK(served.updates[0].gradients == 2);
  CHECK(served.updates[0].samples == 30);
  CHECK(served.key.first_open_iteration() == 1);
  served.push(0, 0, 100, 30);
  CHECK(served.updates.size() == 1);
  CHECK(served.statistics.dropped == 1);
  CHECK(served.key.may_answer(0));
  CHECK(served.values == std::vector<float>(kCount, 6));
}

TEST_CASE("with backup workers a gradient that is late while it arrives is dropped") {
  Served served(3, {Kind::kBackup, 1});
  served.key.begin(0, 0, filled(kCount, [](std::size_t) { return 100.0F; }), 1);
  served.key.arrive(0, 3);
  served.push(2, 0, 4);
  served.push(1, 0, 2);
  CHECK(served.values == std::vector<float>(kCount, 6));
  served.key.arrive(0, kCount);
  CHECK(served.statistics.dropped == 1);
  CHECK(served.values == std::vector<float>(kCount, 6));
}

TEST_CASE("an iteration that ends closes those before it, and counts their gradients as dropped") {
  Served served(4, {Kind::kBackup, 2});
  served.push(0, 0, 1);
  served.push(1, 1, 2);
  served.push(2, 1, 4);
  CHECK(served.values == std::vector<float>(kCount, 6));
  CHECK(served.key.first_open_iteration() == 2);
  CHECK(served.statistics.dropped == 1);
  CHECK(served.key.may_answer(0));
}

TEST_CASE("gradients without samples update nothing, and are answered") {
  const auto kind = GENERATE(Kind::kSynchronous, Kind::kAsynchronous);
  Served served(1, {kind, 0});
  served.push(0, 0, 1, 0);
  CHECK(served.updates.empty());
  CHECK(served.key.may_answer(0));
}

}  // namespace kolo::test
