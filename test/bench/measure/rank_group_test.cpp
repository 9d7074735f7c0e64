// Rank groups of a benchmark: a rank that does not come, and errors that the ranks report together.
#include "bench/measure/rank_group.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/cli/failure.h"
#include "bench/measure/cache_line.h"
#include "test/support/catch.h"

using namespace kolo;
using namespace kolo::bench;

namespace {

constexpr std::chrono::milliseconds kSoon{50};

// The exception text of each of `size` ranks, as threads, from `body`; "" if it throws none.
std::vector<std::string> failures_of(int size, const std::function<void(int, Store&)>& body) {
  const auto store = make_local_store();
  std::vector<std::string> texts(static_cast<std::size_t>(size));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        body(rank, *store);
      } catch (const std::exception& error) {
        texts[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  return texts;
}

}  // namespace

TEST_CASE("waiting ranks name the rank that does not come to a group") {
  const auto texts = failures_of(3, [](int rank, Store& store) {
    RankGroup group(rank, 3, store, kSoon);
    if (rank != 2) group.wait();
  });
  for (const int rank : {0, 1}) {
    INFO(texts[static_cast<std::size_t>(rank)]);
    CHECK(texts[static_cast<std::size_t>(rank)].find("s for rank 2 before") != std::string::npos);
  }
}

TEST_CASE("a rank that waits at a group gets a failure from the store") {
  const auto texts = failures_of(2, [](int rank, Store& store) {
    RankGroup group(rank, 2, store, std::chrono::minutes(10));
    if (rank == 1) store.post_failure("rank 1 has had enough");
    if (rank == 0) group.wait();
  });
  CHECK(texts[0] == "rank 1 has had enough");
}

TEST_CASE("both sides of a ping-pong know its end, and reset their lines") {
  constexpr int kTimes = 20;
  Line lines[2];
  // The callback of a side that waits on busy cores. Here it makes the second side slow.
  const WaitCallback slow = [] {
    const auto end = Clock::now() + std::chrono::milliseconds(2);
    while (Clock::now() < end) {
    }
  };
  double took[2] = {0, 0};
  const auto play = [&](int side) {
    for (int i = 0; i < kTimes; ++i) {
      const bool is_slow = side == 1 && i % 2 == 1;
      took[side] = quickest_ping_pong(lines[0], lines[1], side, is_slow ? slow : WaitCallback{});
    }
  };
  std::thread second(play, 1);
  play(0);
  second.join();
  CHECK(took[0] > 0);
  CHECK(took[1] > 0);
  CHECK(lines[0].value.load() == 0U);
  CHECK(lines[1].value.load() == 0U);
}

TEST_CASE("a ping-pong whose other side is gone lasts until the callback throws") {
  Line lines[2];
  int looks = 0;
  const auto patience = [&looks] {
    if (++looks == 3) throw std::runtime_error("enough");
  };
  REQUIRE_THROWS_AS(quickest_ping_pong(lines[0], lines[1], 0, patience), std::runtime_error);
}

TEST_CASE("ranks with one audience report the first cause once, without its code") {
  const auto store = make_local_store();
  store->post_failure("rank 2 is gone [peer lost]");
  const std::runtime_error own("a connection was closed");
  const auto said = [&](Audience audience) {
    try {
      fail_together(*store, 0, audience, own);
    } catch (const std::exception& failure) {
      return std::string(failure.what());
    }
  };
  CHECK(said(Audience::kOneForAll) == "rank 2 is gone");
  CHECK(said(Audience::kOneForAll) == ReportedByAnotherRank().what());
  CHECK(said(Audience::kOneEachRank) == "rank 2 is gone");
}

TEST_CASE("a cause that names its rank is not prefixed with it again") {
  const auto store = make_local_store();
  const std::runtime_error own("rank 0: a connection was closed");
  CHECK_THROWS_WITH(fail_together(*store, 0, Audience::kOneEachRank, own),
                    "rank 0: a connection was closed");
}
