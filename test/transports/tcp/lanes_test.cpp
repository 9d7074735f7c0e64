// Lanes: several connections of a pair; each takes as many chunks as it can.
#include <array>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "test/support/catch.h"
#include "test/transports/tcp/chunks.h"
#include "test/transports/tcp/fake_peer.h"
#include "test/transports/tcp/pair.h"
#include "transports/error.h"
#include "transports/tcp/lanes_channel.h"

using namespace kolo;
using namespace kolo::test;

namespace {

TcpSettings lanes(int count) {
  TcpSettings settings;
  settings.lanes = count;
  return settings;
}

// The chunks that a fake peer has received on one lane.
class Heard {
 public:
  explicit Heard(RawConnection lane) : lane_(std::move(lane)) {}

  void say(std::string_view bytes) { lane_.say(bytes); }

  // Reads the available bytes and records each whole chunk as (segment, offset).
  void hear(std::multiset<std::pair<std::uint32_t, std::uint32_t>>& chunks) {
    text_ += lane_.hear_now();
    if (!has_hello_ && text_.size() >= tcp::kHelloBytes) {
      text_.erase(0, tcp::kHelloBytes);
      has_hello_ = true;
    }
    tcp::ChunkHeader header;
    while (has_hello_ && text_.size() >= sizeof header) {
      std::memcpy(&header, text_.data(), sizeof header);
      REQUIRE(header.magic == tcp::kChunkMagic);
      REQUIRE(header.bytes <= tcp::kChunkBytes);
      if (text_.size() < sizeof header + header.bytes) return;
      text_.erase(0, sizeof header + header.bytes);
      chunks.emplace(header.segment, header.offset);
    }
  }

 private:
  RawConnection lane_;
  std::string text_;
  bool has_hello_ = false;
};

}  // namespace

TEST_CASE("a pair has as many connections as lanes, no matter which rank begins") {
  const bool both_begin = GENERATE(false, true);
  const Pair pair = make_pair_with(lanes(4));
  const Bytes data = numbered(200'000);
  REQUIRE(pair.a->channel(1).send(data));
  if (both_begin) REQUIRE(pair.b->channel(0).send(data));
  Bytes got(data.size());
  Bytes back(data.size());
  bool is_there = false;
  bool is_back = !both_begin;
  const auto lanes_of = [](Transport& transport, int peer) {
    return transport.channel(peer).statistics().connections;
  };
  const auto deadline = in_seconds(30);
  while (!is_there || !is_back || lanes_of(*pair.a, 1) < 4 || lanes_of(*pair.b, 0) < 4) {
    REQUIRE(Clock::now() < deadline);
    if (!is_there) is_there = pair.b->channel(0).receive(got);
    if (!is_back) is_back = pair.a->channel(1).receive(back);
    pair.a->progress();
    pair.b->progress();
  }
  CHECK(got == data);
  if (both_begin) CHECK(back == data);
  CHECK((lanes_of(*pair.a, 1) == 4 && lanes_of(*pair.b, 0) == 4));
}

TEST_CASE("a lane takes the chunks of another lane that is stuck") {
  FakePeer played(1, lanes(2));
  Heard stuck(played.connect());
  Heard free(played.connect());
  stuck.say(played.hello());
  free.say(played.hello(false, 1));
  const std::size_t segment_bytes = played.channel().capabilities().segment_bytes;
  const Bytes data = numbered(segment_bytes);
  const std::size_t of_segment = segment_bytes / tcp::kChunkBytes;
  const std::size_t segments = tcp::kQueueLength;
  const auto deadline = in_seconds(30);
  const auto until_both_have_come = [&] {
    while (played.channel().statistics().connections < 2) {
      REQUIRE(Clock::now() < deadline);
      static_cast<void>(played.channel().view(8));
      std::this_thread::yield();
    }
  };
  until_both_have_come();
  for (std::size_t i = 0; i < segments; ++i) REQUIRE(played.channel().send(data));

  std::multiset<std::pair<std::uint32_t, std::uint32_t>> chunks;
  while (chunks.size() < segments * of_segment / 2) {  // nothing reads from the stuck lane
    REQUIRE(Clock::now() < deadline);
    played.transport().progress();
    free.hear(chunks);
  }
  while (chunks.size() < segments * of_segment) {
    REQUIRE(Clock::now() < deadline);
    played.transport().progress();
    free.hear(chunks);
    stuck.hear(chunks);
  }
  for (std::uint32_t segment = 0; segment < segments; ++segment) {
    for (std::size_t i = 0; i < of_segment; ++i)
      CHECK(chunks.count({segment, static_cast<std::uint32_t>(i * tcp::kChunkBytes)}) == 1);
  }
}

TEST_CASE("chunks that overtake each other are written to their places") {
  FakePeer played(0, lanes(2));
  RawConnection one = played.connect();
  RawConnection other = played.connect();
  const Bytes first = numbered(tcp::kChunkBytes + 400);
  const Bytes second = numbered(500, 77);
  other.say(played.hello(false, 1) + chunk(0, tcp::kChunkBytes, std::span(first).last(400)) +
            chunk(1, 0, second));
  Bytes got(first.size());
  for (int i = 0; i < 20; ++i) REQUIRE_FALSE(played.channel().receive(got));
  one.say(played.hello() + chunk(0, 0, std::span(first).first(tcp::kChunkBytes)));
  const auto deadline = in_seconds(30);
  while (!played.channel().receive(got)) REQUIRE(Clock::now() < deadline);
  CHECK(got == first);
  Bytes next(500);
  while (!played.channel().receive(next)) REQUIRE(Clock::now() < deadline);
  CHECK(next == second);
}

TEST_CASE("a chunk of an unexpected segment is refused, and nothing is written") {
  FakePeer played(0, lanes(2));
  RawConnection lane = played.connect();
  const Bytes data = numbered(100);
  const std::string wrong =
      GENERATE_REF(chunk(0, 60, data), chunk(0, 0xffffffff, data), std::string(16, 'x'));
  lane.say(played.hello() + wrong);
  Bytes got(100, std::byte{1});
  const auto deadline = in_seconds(30);
  try {
    while (!played.channel().receive(got)) REQUIRE(Clock::now() < deadline);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(),
               ContainsSubstring("rank 1") && ContainsSubstring("a different segment"));
  }
  CHECK(got == Bytes(100, std::byte{1}));
}

TEST_CASE("a duplicate or misaligned part of a segment is refused and not counted") {
  FakePeer played(0, lanes(2));
  const bool is_by_another_lane = GENERATE(false, true);
  const Bytes data = numbered(2 * tcp::kChunkBytes);
  const std::string first = chunk(0, 0, std::span(data).first(tcp::kChunkBytes));
  const std::array wrongs = {first, chunk(0, 100, std::span(data).first(tcp::kChunkBytes)),
                             chunk(0, tcp::kChunkBytes, std::span(data).first(100))};
  const std::string wrong = wrongs.at(GENERATE(0u, 1u, 2u));
  RawConnection one = played.connect();
  RawConnection other = played.connect();
  // Both parts have as many bytes as the segment, but do not cover it.
  one.say(played.hello() + first + (is_by_another_lane ? "" : wrong));
  other.say(played.hello(false, 1) + (is_by_another_lane ? wrong : ""));
  Bytes got(data.size());
  const std::string loss =
      loss_in(played.transport(), [&] { return played.channel().receive(got); });
  CHECK_THAT(loss, ContainsSubstring("rank 1") &&
                       (ContainsSubstring("twice") || ContainsSubstring("a different segment")) &&
                       !ContainsSubstring("has ended"));
}

TEST_CASE("a peer that sends data after its goodbye is refused") {
  FakePeer played(0, lanes(2));
  RawConnection lane = played.connect();
  const std::string after = GENERATE_REF(goodbye(1), chunk(0, 0, numbered(100)));
  lane.say(played.hello() + goodbye(1) + after);
  Bytes got(100);
  const std::string loss =
      loss_in(played.transport(), [&] { return played.channel().receive(got); });
  CHECK_THAT(loss, ContainsSubstring("after its goodbye"));
}

TEST_CASE("ranks with different numbers of lanes get an error") {
  const auto store = make_local_store();
  bool is_refused = false;
  std::thread other([&] {
    try {
      make_tcp({1, 2, store, in_seconds(30), 0, 2}, lanes(2));
    } catch (const Error& error) {
      is_refused = error.code() == ErrorCode::kMismatch;
    }
  });
  try {
    make_tcp({0, 2, store, in_seconds(30), 0, 2}, lanes(3));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kMismatch);
    CHECK_THAT(error.what(), ContainsSubstring("KOLO_TCP_LANES"));
  }
  other.join();
  CHECK(is_refused);
}
