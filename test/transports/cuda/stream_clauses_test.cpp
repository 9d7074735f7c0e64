// Contract of StreamChannel, over every implementation: cuda_ipc, and staging over each transport
// of this build.
#include <random>
#include <thread>

#include "test/support/catch.h"
#include "test/transports/cuda/stream_kinds.h"

using namespace kolo;
using namespace kolo::test;

namespace {

// Runs the clause over every kind, and checks for leaks when all is closed.
void over_all_kinds(const std::function<void(StreamRanks& ranks)>& clause, int size = 2) {
  for (const StreamKind& kind : stream_kinds()) {
    DYNAMIC_SECTION(kind.name) {
      StreamRanks ranks(kind, size);
      clause(ranks);
      ranks.close();
      CHECK(ranks.machine.run());
      CHECK(ranks.machine.violations().empty());
      CHECK(ranks.machine.left_over().find("mapping") == std::string::npos);
      CHECK(ranks.machine.left_over().find("host memory") == std::string::npos);
      CHECK(ranks.machine.left_over().find("stream") == std::string::npos);
      CHECK(ranks.machine.left_over().find("event") == std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("a stream channel reports its capabilities") {
  over_all_kinds([](StreamRanks& ranks) {
    const Capabilities& can = ranks.stream(0, 1).capabilities();
    CHECK(can.segment_bytes == kStreamSegment);
    CHECK(can.credit_segments >= kMinimumCredit);
    CHECK_FALSE(can.can_answer);
    CHECK(ranks.stream(0, 1).can_send());
  });
}

TEST_CASE("segments in slots arrive in order, and streams wait for credit instead of hosts") {
  over_all_kinds([](StreamRanks& ranks) {
    constexpr std::size_t kSegments = 100;
    constexpr std::size_t kBytes = 1000;
    ranks.begin();
    std::byte* const from = ranks.memory(0, kSegments * kBytes, 0);
    std::byte* const into = ranks.memory(1, kSegments * kBytes, 99);
    for (std::size_t i = 0; i < kSegments; ++i) ranks.commit(0, 1, from + i * kBytes, kBytes);
    CHECK_FALSE(ranks.machine.run());
    for (std::size_t i = 0; i < kSegments; ++i) ranks.view(1, 0, into + i * kBytes, kBytes);
    ranks.finish();
    CHECK(StreamRanks::is_filled(into, kSegments * kBytes, 0));
    ranks.end();
    CHECK(ranks.channel(1, 0).statistics().segments_received == kSegments);
    CHECK(ranks.channel(1, 0).statistics().bytes_received == kSegments * kBytes);
  });
}

TEST_CASE("a rank that views first makes its stream wait, and its host continues") {
  over_all_kinds([](StreamRanks& ranks) {
    ranks.begin();
    std::byte* const into = ranks.memory(1, 8, 50);
    ranks.view(1, 0, into, 8);
    CHECK_FALSE(ranks.machine.run());
    CHECK_FALSE(StreamRanks::is_filled(into, 8, 3));
    ranks.commit(0, 1, ranks.memory(0, 8, 3), 8);
    ranks.finish();
    CHECK(StreamRanks::is_filled(into, 8, 3));
    ranks.end();
  });
}

TEST_CASE("segments may have any length, also zero") {
  over_all_kinds([](StreamRanks& ranks) {
    ranks.begin();
    int seed = 0;
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{63}, kStreamSegment - 1, kStreamSegment}) {
      std::byte* const into = ranks.memory(1, bytes, 99);
      ranks.view(1, 0, into, bytes);
      CHECK_FALSE(ranks.machine.run());
      ranks.commit(0, 1, ranks.memory(0, bytes, ++seed), bytes);
      ranks.finish();
      CHECK(StreamRanks::is_filled(into, bytes, seed));
    }
    ranks.end();
  });
}

TEST_CASE("memory of any length is sent directly, and is received or viewed") {
  over_all_kinds([](StreamRanks& ranks) {
    ranks.begin();
    int seed = 0;
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, kStreamSegment, kStreamSegment + 1, std::size_t{50'000},
          std::size_t{300'001}}) {
      INFO(bytes << " bytes");
      std::byte* const from = ranks.memory(0, bytes, ++seed);
      std::byte* const into = ranks.memory(1, bytes, 99);
      ranks.send(0, 1, {from, bytes});
      ranks.receive(1, 0, {into, bytes});
      ranks.send(0, 1, {from, bytes});
      const std::byte* const seen = ranks.view_sent(1, 0, bytes);
      ranks.finish();
      CHECK(StreamRanks::is_filled(into, bytes, seed));
      CHECK(StreamRanks::is_filled(seen, bytes, seed));
      ranks.stream(1, 0).release(ranks.on(1));
    }
    ranks.finish();
    ranks.end();
  });
}

TEST_CASE("ranks that all send long memory first and then receive do not deadlock") {
  over_all_kinds(
      [](StreamRanks& ranks) {
        constexpr std::size_t kBytes = 500'000;
        ranks.begin();
        std::vector<std::byte*> into;
        for (int rank = 0; rank < 3; ++rank)
          ranks.send(rank, (rank + 1) % 3, {ranks.memory(rank, kBytes, rank), kBytes});
        for (int rank = 0; rank < 3; ++rank) {
          into.push_back(ranks.memory(rank, kBytes, 99));
          ranks.receive(rank, (rank + 2) % 3, {into.back(), kBytes});
        }
        ranks.finish();
        for (int rank = 0; rank < 3; ++rank)
          CHECK(
              StreamRanks::is_filled(into[static_cast<std::size_t>(rank)], kBytes, (rank + 2) % 3));
        ranks.end();
      },
      3);
}

// A transport may carry memory that its peers cannot open by another method.
TEST_CASE("ranks that send memory which no peer can open first, and then slots, do not deadlock") {
  over_all_kinds([](StreamRanks& ranks) {
    constexpr std::size_t kBytes = 200'000;
    ranks.begin();
    std::vector<std::byte*> into;
    for (int rank = 0; rank < 2; ++rank) {
      for (int i = 0; i < 2; ++i) {
        std::byte* const from = ranks.memory(rank, kBytes, i, FakeDriver::Kind::kPool);
        ranks.send(rank, 1 - rank, {from, kBytes});
      }
    }
    for (int i = 0; i < 2; ++i) {
      for (int rank = 0; rank < 2; ++rank) {
        into.push_back(ranks.memory(rank, kBytes, 99));
        ranks.receive(rank, 1 - rank, {into.back(), kBytes});
      }
    }
    for (int rank = 0; rank < 2; ++rank) {
      ranks.commit(rank, 1 - rank, ranks.memory(rank, 100, 7), 100);
      ranks.stream(rank, 1 - rank).drain(ranks.on(rank));
    }
    for (int rank = 0; rank < 2; ++rank) {
      into.push_back(ranks.memory(rank, 100, 99));
      ranks.view(rank, 1 - rank, into.back(), 100);
    }
    ranks.finish();
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(StreamRanks::is_filled(into[i], kBytes, static_cast<int>(i / 2)));
    CHECK(StreamRanks::is_filled(into[4], 100, 7));
    CHECK(StreamRanks::is_filled(into[5], 100, 7));
    ranks.end();
  });
}

TEST_CASE("slots and memory alternate on one channel, in both directions at once") {
  over_all_kinds([](StreamRanks& ranks) {
    ranks.begin();
    std::vector<std::pair<std::byte*, std::size_t>> got;
    for (int i = 0; i < 40; ++i) {
      const bool is_straight = i % 3 == 1;
      const std::size_t bytes = is_straight ? 10'000 : 100;
      for (int rank = 0; rank < 2; ++rank) {
        std::byte* const from = ranks.memory(rank, bytes, i);
        if (is_straight)
          ranks.send(rank, 1 - rank, {from, bytes});
        else
          ranks.commit(rank, 1 - rank, from, bytes);
      }
      for (int rank = 0; rank < 2; ++rank) {
        std::byte* const into = ranks.memory(rank, bytes, 99);
        if (is_straight)
          ranks.receive(rank, 1 - rank, {into, bytes});
        else
          ranks.view(rank, 1 - rank, into, bytes);
        got.emplace_back(into, bytes);
      }
    }
    ranks.finish();
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(i);
      CHECK(StreamRanks::is_filled(got[i].first, got[i].second, static_cast<int>(i / 2)));
    }
    ranks.end();
  });
}

TEST_CASE("any mixture arrives, however far the device is behind its hosts") {
  struct Expected {
    std::byte* at;
    std::size_t bytes;
    int seed;
  };
  for (const StreamKind& kind : stream_kinds()) {
    for (const unsigned seed : {1U, 2U, 3U}) {
      DYNAMIC_SECTION(kind.name << ", seed " << seed) {
        std::mt19937 random(seed);
        const auto pick = [&random](std::size_t below) { return random() % below; };
        StreamRanks ranks(
            kind, 3, [](int, StagedSettings& settings) { settings.most_under_way = 25; },
            FakeMachine::Runs::kWhenTold);
        ranks.begin();
        std::vector<Expected> expected;
        for (int i = 0; i < 200; ++i) {
          const int from = static_cast<int>(pick(3));
          const int to = (from + 1 + static_cast<int>(pick(2))) % 3;
          const bool is_slot = pick(2) == 0;
          const std::size_t bytes = pick(3) == 0 ? pick(100) : pick(is_slot ? 4097 : 30'000);
          const auto memory = pick(4) == 0 ? FakeDriver::Kind::kPool : FakeDriver::Kind::kDevice;
          std::byte* const data = ranks.memory(from, bytes, i, memory);
          std::byte* const into = ranks.memory(to, bytes, 99);
          expected.push_back({into, bytes, i});
          if (is_slot) {
            ranks.commit(from, to, data, bytes);
            ranks.view(to, from, into, bytes);
          } else if (pick(2) == 0) {
            ranks.send(from, to, {data, bytes});
            ranks.receive(to, from, {into, bytes});
          } else {
            ranks.send(from, to, {data, bytes});
            ranks.copy(to, into, ranks.view_sent(to, from, bytes), bytes);
            ranks.stream(to, from).release(ranks.on(to));
          }
          if (pick(3) == 0) ranks.transport(static_cast<int>(pick(3))).progress();
          if (pick(10) == 0) ranks.machine.run();
        }
        ranks.finish();
        for (const Expected& one : expected)
          CHECK(StreamRanks::is_filled(one.at, one.bytes, one.seed));
        ranks.end();
        ranks.finish();
        ranks.close();
        CHECK(ranks.machine.violations().empty());
      }
    }
  }
}

TEST_CASE("sent memory may be changed after drain(), and viewed memory stays unchanged") {
  over_all_kinds([](StreamRanks& ranks) {
    constexpr std::size_t kBytes = 100'000;
    ranks.begin();
    std::byte* const from = ranks.memory(0, kBytes, 5);
    std::byte* const other = ranks.memory(0, kBytes, 77);
    std::byte* const into = ranks.memory(1, kBytes, 99);
    ranks.stream(0, 1).drain(ranks.on(0));
    CHECK(ranks.machine.run());
    ranks.send(0, 1, {from, kBytes});
    ranks.stream(0, 1).drain(ranks.on(0));
    ranks.copy(0, from, other, kBytes);
    ranks.receive(1, 0, {into, kBytes});
    ranks.finish();
    CHECK(StreamRanks::is_filled(into, kBytes, 5));
    CHECK(StreamRanks::is_filled(from, kBytes, 77));
    ranks.end();
  });
}

TEST_CASE("the destination of a receive is unchanged until the stream reaches the receive") {
  over_all_kinds([](StreamRanks& ranks) {
    ranks.begin();
    std::byte* const into = ranks.memory(1, 64, 40);
    std::byte* const kept = ranks.memory(1, 64, 99);
    std::byte* const late = ranks.memory(1, 8, 99);
    ranks.send(0, 1, {ranks.memory(0, 8, 1), 8});
    ranks.send(0, 1, {ranks.memory(0, 64, 2), 64});
    // Before its receive, the stream reads the old content.
    ranks.receive(1, 0, {late, 8});
    ranks.copy(1, kept, into, 64);
    ranks.receive(1, 0, {into, 64});
    ranks.finish();
    CHECK(StreamRanks::is_filled(kept, 64, 40));
    CHECK(StreamRanks::is_filled(into, 64, 2));
    ranks.end();
  });
}

TEST_CASE("the next batch may use another stream, and the last one's stream may be gone") {
  over_all_kinds([](StreamRanks& ranks) {
    ranks.begin();
    std::byte* const into = ranks.memory(1, 16, 99);
    ranks.view(1, 0, into, 8);
    ranks.end();
    ranks.driver(1).destroy_stream(ranks.on(1));
    ranks.streams[1] = ranks.driver(1).make_stream();
    ranks.begin();
    ranks.view(1, 0, into + 8, 8);
    CHECK_FALSE(ranks.machine.run());
    std::byte* const from = ranks.memory(0, 16, 6);
    ranks.commit(0, 1, from, 8);
    ranks.commit(0, 1, from + 8, 8);
    ranks.finish();
    CHECK(StreamRanks::is_filled(into, 16, 6));
    ranks.end();
  });
}

TEST_CASE("wrong calls on streams are errors of the caller and change nothing") {
  over_all_kinds([](StreamRanks& ranks) {
    StreamChannel& out = ranks.stream(0, 1);
    const cuda::Stream own = ranks.on(0);
    CHECK_THROWS_AS(out.reserve(own, 8), std::invalid_argument);
    ranks.begin();
    const cuda::Stream other = ranks.driver(0).make_stream();
    CHECK_THROWS_AS(out.begin(own), std::invalid_argument);
    CHECK_THROWS_AS(out.reserve(other, 8), std::invalid_argument);
    CHECK_THROWS_AS(out.commit(own, kPlain), std::invalid_argument);
    CHECK_THROWS_AS(out.release(own), std::invalid_argument);
    CHECK_THROWS_AS(out.reserve(own, kStreamSegment + 1), std::invalid_argument);
    CHECK_THROWS_AS(out.view(own, kStreamSegment + 1), std::invalid_argument);
    REQUIRE(out.reserve(own, 8) != nullptr);
    CHECK_THROWS_AS(out.reserve(own, 8), std::invalid_argument);
    CHECK_THROWS_AS(out.send(own, {}, kPlain), std::invalid_argument);
    CHECK_THROWS_AS(out.commit(own, kAnswered), std::invalid_argument);
    out.commit(own, kPlain);
    std::byte on_host[8] = {};
    CHECK_THROWS_WITH(out.send(own, on_host, kPlain),
                      ContainsSubstring("host memory that no device reaches"));
    CHECK_THROWS_WITH(out.receive(own, on_host, kPlain),
                      ContainsSubstring("host memory that no device reaches"));
    ranks.view(1, 0, ranks.memory(1, 8, 0), 8);
    ranks.finish();
    ranks.end();
    if (out.why_not_captured().empty()) return;  // captured_channel_test.cpp tests these
    ranks.driver(0).capture(other);
    CHECK_THROWS_WITH(out.begin(other), ContainsSubstring("captured into a graph"));
    CHECK_THROWS_WITH(out.begin(other), ContainsSubstring("without its host"));
    ranks.driver(0).end_capture(other);
  });
}

TEST_CASE("a stream that waits for a closed peer is freed, and the error names the peer") {
  over_all_kinds([](StreamRanks& ranks) {
    ranks.begin();
    ranks.view(0, 1, ranks.memory(0, 8, 0), 8);
    ranks.end();
    std::thread closing([&] { ranks.transport(1).quiesce(); });
    const Error error = ranks.error_of_progress(0);
    CHECK(error.code() == ErrorCode::kPeerLost);
    CHECK(error.peer() == 1);
    CHECK_THAT(error.what(), ContainsSubstring("rank 1"));
    CHECK_FALSE(ranks.machine.run());
    ranks.transport(0).quiesce();
    closing.join();
    CHECK(ranks.machine.run());
    const auto closed = error_of([&] { ranks.begin(0); });
    REQUIRE(closed);
    CHECK(closed->code() == ErrorCode::kAborted);
  });
}

TEST_CASE("data sent by a rank's stream before the rank ended arrives after the rank is gone") {
  over_all_kinds([](StreamRanks& ranks) {
    constexpr std::size_t kBytes = 10'000;
    ranks.begin();
    ranks.commit(0, 1, ranks.memory(0, 100, 1), 100);
    ranks.commit(0, 1, ranks.memory(0, 4000, 2), 4000);
    ranks.end(0);
    std::thread closing([gone = std::move(ranks.ranks[0].transport)]() mutable { gone.reset(); });
    std::byte* const into = ranks.memory(1, kBytes, 99);
    ranks.view(1, 0, into, 100);
    ranks.view(1, 0, into + 5000, 4000);
    ranks.finish();
    CHECK(StreamRanks::is_filled(into, 100, 1));
    CHECK(StreamRanks::is_filled(into + 5000, 4000, 2));
    ranks.end(1);
    ranks.transport(1).quiesce();
    closing.join();
  });
}

TEST_CASE("a transport closes in every state of its streams") {
  using State = std::function<void(StreamRanks&)>;
  const std::vector<State> states = {
      [](StreamRanks&) {},
      [](StreamRanks& ranks) { ranks.begin(0); },
      [](StreamRanks& ranks) {
        ranks.begin(0);
        ranks.stream(0, 1).reserve(ranks.on(0), 8);
      },
      [](StreamRanks& ranks) {
        ranks.begin(0);
        for (int i = 0; i < 100; ++i) ranks.commit(0, 1, ranks.memory(0, 64, i), 64);
      },
      [](StreamRanks& ranks) {
        ranks.begin(0);
        ranks.stream(0, 1).view(ranks.on(0), 8);
      },
      [](StreamRanks& ranks) {
        ranks.begin(0);
        ranks.send(0, 1, {ranks.memory(0, 500'000, 1), 500'000});
        ranks.stream(0, 1).drain(ranks.on(0));
        ranks.end(0);
      },
      [](StreamRanks& ranks) {
        ranks.begin();
        ranks.send(1, 0, {ranks.memory(1, 500'000, 1), 500'000});
        ranks.receive(0, 1, {ranks.memory(0, 500'000, 1), 500'000});
        ranks.end(0);
      },
  };
  for (std::size_t i = 0; i < states.size(); ++i) {
    over_all_kinds([&](StreamRanks& ranks) {
      INFO("state " << i);
      states[i](ranks);
      std::thread closing([&] { ranks.transport(1).quiesce(); });
      ranks.transport(0).quiesce();
      closing.join();
      CHECK(ranks.machine.run());
    });
  }
}
