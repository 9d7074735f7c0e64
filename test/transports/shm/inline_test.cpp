// Two segments in one call (transports/shm/channel_inline.cpp): when they share a frame, which
// misuse is refused, and that the stream stays the same. One thread runs both ranks.
#include <cstring>
#include <stdexcept>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/shm/ranks.h"
#include "transports/shm/layout.h"

using namespace kolo;
using namespace kolo::test;

namespace {

std::vector<std::byte> bytes_of(std::size_t count, unsigned first) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

// Two connected ranks: one segment has gone each way.
struct Pair {
  Pair() : ranks(make_ranks(2)) {
    send(*ranks[0], 1, 1);
    send(*ranks[1], 0, 2);
    bool is_here[2] = {false, false};
    std::uint64_t value = 0;
    const auto into = std::as_writable_bytes(std::span(&value, 1));
    wait_until(
        *ranks[0],
        [&] {
          ranks[1]->progress();
          for (const int rank : {0, 1}) {
            Channel& in = ranks[static_cast<std::size_t>(rank)]->channel(1 - rank);
            is_here[rank] = is_here[rank] || in.receive(into);
          }
          return is_here[0] && is_here[1];
        },
        "the first segments");
  }

  Channel& low() { return ranks[0]->channel(1); }
  Channel& high() { return ranks[1]->channel(0); }

  std::vector<std::unique_ptr<Transport>> ranks;
};

}  // namespace

TEST_CASE("two segments in one call are viewed together, and count as two") {
  Pair pair;
  const auto head = bytes_of(24, 3);
  for (const std::size_t bytes : {1U, 192U, 193U, 4095U}) {
    const auto next = bytes_of(bytes, 90);
    const ChannelStatistics before = pair.high().statistics();
    REQUIRE(pair.low().send_both(head, 56, next));
    const Both both = pair.high().view_both(56, bytes);
    REQUIRE(both.first != nullptr);
    CHECK(std::memcmp(both.first, head.data(), head.size()) == 0);
    CHECK(std::memcmp(both.next, next.data(), next.size()) == 0);
    pair.high().release_both();
    CHECK(pair.high().statistics().segments_received == before.segments_received + 2);
    CHECK(pair.high().statistics().bytes_received == before.bytes_received + 56 + bytes);
  }
  CHECK(pair.low().statistics().segments_sent == pair.high().statistics().segments_received);
  CHECK(pair.low().statistics().bytes_sent == pair.high().statistics().bytes_received);
}

TEST_CASE("two segments that were viewed one by one cannot be released together") {
  Pair pair;
  const auto head = bytes_of(24, 3);
  REQUIRE(pair.low().send_both(head, 56, head));
  CHECK_THROWS_AS(pair.high().release_both(), std::invalid_argument);
  REQUIRE(pair.high().view(56) != nullptr);
  CHECK(pair.high().view_both(56, 24).first == nullptr);
  CHECK_THROWS_AS(pair.high().release_both(), std::invalid_argument);
  pair.high().release();
  REQUIRE(pair.high().view_unaligned(24) != nullptr);
  pair.high().release();
  // And in the reverse order.
  REQUIRE(pair.low().send_both(head, 56, head));
  REQUIRE(pair.high().view_both(56, 24).first != nullptr);
  CHECK_THROWS_AS(pair.high().view(56), std::invalid_argument);
  CHECK_THROWS_AS(pair.high().release(), std::invalid_argument);
  CHECK(pair.high().view_both(56, 24).first == nullptr);
  pair.high().release_both();
}

TEST_CASE("segments that do not fit or have flags must be sent one by one") {
  Pair pair;
  const auto head = bytes_of(24, 3);
  CHECK_FALSE(pair.low().send_both(head, 56, bytes_of(4096, 0)));  // its copy method must be chosen
  CHECK_FALSE(pair.low().send_both(head, 200, head));
  CHECK_FALSE(pair.low().send_both(head, 56, head, kMore));
  CHECK_FALSE(pair.low().send_both(head, 56, head, kAnswered));
  CHECK_THROWS_AS(pair.low().send_both(head, 16, head), std::invalid_argument);
  CHECK_THROWS_AS(pair.low().send_gathered(head, head, 40), std::invalid_argument);
  CHECK_THROWS_AS(pair.low().send_both(bytes_of(23, 0), 56, head), std::invalid_argument);
  REQUIRE(pair.low().send(head, kMore));  // is held back, and goes first
  CHECK_FALSE(pair.low().send_both(head, 56, head));
  REQUIRE(pair.low().send_gathered(head, {}, 56));
  REQUIRE(pair.high().view_unaligned(24) != nullptr);
  pair.high().release();
  REQUIRE(pair.high().view_unaligned(56) != nullptr);
  pair.high().release();
}

TEST_CASE("a rank that reads nothing gives no credit, also for two segments in one call") {
  for (const std::size_t bytes : {8U, 1000U}) {
    Pair pair;
    const auto head = bytes_of(24, 3);
    const auto next = bytes_of(bytes, 50);
    std::size_t sent = 0;
    while (sent < 1000 && pair.low().send_both(head, 56, next)) ++sent;
    CHECK(sent >= static_cast<std::size_t>(kMinimumCredit));
    CHECK(sent < shm::kFrames);
    for (std::size_t i = 0; i < sent; ++i) {
      const Both both = pair.high().view_both(56, bytes);
      REQUIRE(both.first != nullptr);
      CHECK(std::memcmp(both.next, next.data(), next.size()) == 0);
      pair.high().release_both();
    }
    CHECK(pair.high().view_both(56, bytes).first == nullptr);
    CHECK(pair.low().send_both(head, 56, next));
  }
}

TEST_CASE("two segments in one call are no longer than the segment limit") {
  ShmSettings settings;
  settings.segment_bytes = 64;
  run_connected(
      2,
      [](Transport& transport) {
        Channel& channel = transport.channel(1 - transport.rank());
        const auto head = bytes_of(24, 3);
        const auto next = bytes_of(64, 50);
        if (transport.rank() == 0) {
          wait_until(
              transport, [&] { return channel.send(head); }, "credit");
          expect(!channel.send_both(head, 56, bytes_of(1000, 0)));
          wait_until(
              transport, [&] { return channel.send_both(head, 56, next); }, "credit for both");
          std::vector<std::byte> word(8);
          wait_until(
              transport, [&] { return channel.receive(word); }, "the peer's word");
          return;
        }
        std::vector<std::byte> into(24);
        wait_until(
            transport, [&] { return channel.receive(into); }, "the first");
        Both both;
        wait_until(
            transport, [&] { return (both = channel.view_both(56, 64)).first != nullptr; },
            "the two");
        expect(std::memcmp(both.next, next.data(), next.size()) == 0);
        channel.release_both();
        expect(channel.send(bytes_of(8, 0)));
        wait_until(
            transport, [&] { return channel.is_drained(); }, "the end");
      },
      settings);
}

TEST_CASE("two empty segments are released like any others") {
  Pair pair;
  REQUIRE(pair.low().send_both({}, 0, {}));
  REQUIRE(pair.high().view_both(0, 0).first != nullptr);
  CHECK_THROWS_AS(pair.high().view(0), std::invalid_argument);
  pair.high().release_both();
}

TEST_CASE("a peer may take back slots while a short segment is in view") {
  Pair pair;
  constexpr std::size_t kLong = 64 * 1024;
  auto memory = pair.ranks[0]->allocate(kLong);
  std::vector<std::byte> into(kLong);
  const auto take = [&] {
    wait_until(
        *pair.ranks[1],
        [&] {
          pair.ranks[0]->progress();
          return pair.high().receive(into);
        },
        "a long segment");
  };
  REQUIRE(pair.low().send({memory.get(), kLong}));
  take();
  const auto head = bytes_of(24, 3);
  REQUIRE(pair.low().is_drained());
  memory.reset();
  REQUIRE(pair.low().send_gathered(head, {}, 56));
  const auto other = pair.ranks[0]->allocate(kLong);
  REQUIRE(pair.low().send({other.get(), kLong}));
  REQUIRE(pair.high().view_unaligned(56) != nullptr);
  for (int i = 0; i < 10; ++i) pair.ranks[1]->progress();
  pair.high().release();
  take();
}

TEST_CASE("a sleeping rank wakes when two segments in one call arrive") {
  run_connected(2, [](Transport& transport) {
    Channel& channel = transport.channel(1 - transport.rank());
    const auto head = bytes_of(24, 3);
    const auto next = bytes_of(100, 50);
    for (int i = 0; i < 200; ++i) {
      if (transport.rank() == i % 2) {
        if (channel.send_both(head, 56, next)) continue;
        wait_until(
            transport, [&] { return channel.send_gathered(head, {}, 56); }, "credit");
        wait_until(
            transport, [&] { return channel.send_copy(next); }, "credit");
        continue;
      }
      const std::byte* alone = nullptr;
      Both both;
      wait_until(
          transport,
          [&] {
            both = channel.view_both(56, 100);
            if (both.first == nullptr) alone = channel.view_unaligned(56);
            return both.first != nullptr || alone != nullptr;
          },
          "the two", Wait::kSleep);
      if (both.first != nullptr) {
        channel.release_both();
      } else {
        channel.release();
        std::vector<std::byte> into(100);
        wait_until(
            transport, [&] { return channel.receive(into); }, "the second");
      }
    }
  });
}
