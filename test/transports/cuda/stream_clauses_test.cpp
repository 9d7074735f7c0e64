// The stream clauses over every kind of stream channel (cuda_ipc, and staging over each transport
// of this build) on a fake machine: ranks as threads, and as processes. And what only a test can
// show that controls when the machine works.
#include <algorithm>
#include <random>

#include "test/support/catch.h"
#include "test/transports/cuda/stream_clauses.h"

using namespace kolo;
using namespace kolo::test;

namespace {

void prove_in_fake_threads(std::string_view text) {
  const auto clauses = stream_clauses();
  const StreamClause& clause = *std::ranges::find(clauses, text, &StreamClause::text);
  for (const StreamKind& kind : stream_kinds()) {
    DYNAMIC_SECTION(kind.name) {
      FakeMachine machine;
      std::vector<std::shared_ptr<FakeDriver>> drivers;
      CHECK_NOTHROW(prove_in_threads(clause, kind, [&](int rank) {
        drivers.push_back(machine.process());
        return fake_machine(drivers.back(), "rank " + std::to_string(rank));
      }));
      CHECK(machine.run());
      CHECK(machine.violations().empty());
      CHECK(machine.left_over().empty());
    }
  }
}

}  // namespace

#define KOLO_STREAM_CLAUSE(function, size, text) \
  TEST_CASE(text) { prove_in_fake_threads(text); }
#include "test/transports/cuda/stream_clauses.inc"
#undef KOLO_STREAM_CLAUSE

TEST_CASE("ranks as processes with fake drivers keep every stream clause") {
  for (const StreamKind& kind : stream_kinds()) {
    if (kind.joins_processes()) DYNAMIC_SECTION(kind.name) {
        CHECK(prove_in_processes(kind, StreamDriver::kFake) == "");
      }
  }
}

TEST_CASE("ranks as threads of another process keep every stream clause") {
  const auto kinds = stream_kinds();
  CHECK(prove_in_threads_of_a_process(kinds.front(), StreamDriver::kFake) == "");
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

TEST_CASE("a captured batch is refused where hosts carry the data") {
  for (const StreamKind& kind : stream_kinds()) {
    if (!kind.is_staged) continue;  // captured_channel_test.cpp tests the others
    DYNAMIC_SECTION(kind.name) {
      StreamRanks ranks(kind);
      StreamChannel& out = ranks.stream(0, 1);
      CHECK_FALSE(out.why_not_captured().empty());
      const cuda::Stream captured = ranks.driver(0).make_stream();
      ranks.driver(0).capture(captured);
      CHECK_THROWS_WITH(out.begin(captured), ContainsSubstring("captured into a graph"));
      CHECK_THROWS_WITH(out.begin(captured), ContainsSubstring("without its host"));
      ranks.driver(0).end_capture(captured);
    }
  }
}
