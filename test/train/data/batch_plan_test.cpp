// Orders, batches and shares, tested exhaustively for small sizes.
#include "train/data/batch_plan.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "test/support/catch.h"
#include "train/data/dataset.h"

namespace kolo::train {
namespace {

TEST_CASE("an epoch's order is a permutation that seed and epoch determine") {
  for (const std::int64_t samples : {0, 1, 2, 3, 97, 1000}) {
    std::vector<std::uint32_t> order = epoch_order(samples, 5, 2);
    CHECK(order == epoch_order(samples, 5, 2));
    if (samples > 90) {
      CHECK(order != epoch_order(samples, 5, 3));
      CHECK(order != epoch_order(samples, 6, 2));
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == i);
  }
  CHECK(epoch_order(8, 1, 0) == std::vector<std::uint32_t>{1, 0, 3, 6, 5, 2, 4, 7});
}

TEST_CASE("all permutations of four are about equally likely") {
  std::vector<int> counts(256);
  for (std::int64_t epoch = 0; epoch < 24'000; ++epoch) {
    const auto order = epoch_order(4, 9, epoch);
    ++counts[order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3]];
  }
  int reached = 0;
  for (const int count : counts) {
    if (count == 0) continue;
    ++reached;
    CHECK(count == Approx(1000).margin(150));
  }
  CHECK(reached == 24);
}

TEST_CASE("shares of a batch are adjacent, complete and differ by at most one") {
  for (std::int64_t count = 0; count < 40; ++count) {
    for (int ranks = 1; ranks < 12; ++ranks) {
      std::int64_t position = 100, smallest = count, largest = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const OrderRange share = share_of({100, count}, rank, ranks);
        REQUIRE(share.begin == position);
        position += share.count;
        smallest = std::min(smallest, share.count);
        largest = std::max(largest, share.count);
      }
      REQUIRE(position == 100 + count);
      REQUIRE(largest - smallest <= 1);
    }
  }
}

TEST_CASE(
    "the samples of an iteration are the same for every number of ranks, and each counts once per "
    "epoch") {
  for (const std::int64_t samples : {8, 63, 64, 65, 100}) {
    for (const std::int64_t batch : {8, 13, 64}) {
      const BatchPlan alone(samples, batch, 1);
      for (const int ranks : {2, 3, 7, 8}) {
        const BatchPlan plan(samples, batch, ranks);
        REQUIRE(plan.iterations_per_epoch() == alone.iterations_per_epoch());
        std::int64_t seen = 0;
        for (std::int64_t i = 0; i < plan.iterations_per_epoch(); ++i) {
          REQUIRE(plan.global(i) == alone.local(i, 0));
          for (int rank = 0; rank < ranks; ++rank) {
            REQUIRE(plan.local(i, rank).begin == seen);
            seen += plan.local(i, rank).count;
          }
        }
        REQUIRE(seen == samples);
      }
    }
  }
}

TEST_CASE("a plan that leaves ranks without work is rejected") {
  CHECK_THROWS_WITH(BatchPlan(3, 64, 4),
                    "more ranks than samples: 4 ranks, but 3 samples; use fewer ranks, or more "
                    "samples (--train-size, --test-size)");
  CHECK_THROWS_WITH(BatchPlan(100, 2, 4),
                    "a global batch of 2 leaves some of 4 ranks without work; it must be at least "
                    "one sample a rank");
  CHECK_THROWS_AS(BatchPlan(0, 8, 1), DataError);
  CHECK_THROWS_AS(BatchPlan(8, 8, 0), std::invalid_argument);
  CHECK_THROWS_AS(BatchPlan(8, 8, 2).local(0, 2), std::invalid_argument);
  CHECK_THROWS_AS(BatchPlan(8, 8, 2).global(1), std::invalid_argument);
  CHECK_NOTHROW(BatchPlan(4, 64, 4));
}

}  // namespace
}  // namespace kolo::train
