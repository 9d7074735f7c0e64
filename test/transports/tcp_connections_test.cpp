// Connections of tcp: made when a channel is first used, and of which both ends always agree what
// comes before what, whoever connected first. The peer is the real one, or is played by the test,
// byte by byte.
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/tcp_pair.h"
#include "test/transports/tcp_played.h"
#include "transports/error.h"
#include "transports/tcp/hello.h"

using namespace kolo;
using namespace kolo::test;

namespace {

std::uint64_t connections(Transport& transport, int peer) {
  return transport.channel(peer).statistics().connections;
}

template <typename Call>
void until(Transport& transport, const Call& is_done) {
  const auto deadline = in_seconds(30);
  while (!is_done()) {
    transport.progress();
    REQUIRE(Clock::now() < deadline);
    std::this_thread::yield();
  }
}

tcp::Hello hello_in(const std::string& text) {
  std::array<std::byte, tcp::kHelloBytes> bytes{};
  REQUIRE(text.size() >= bytes.size());
  std::memcpy(bytes.data(), text.data(), bytes.size());
  const auto hello = tcp::decode(bytes);
  REQUIRE(hello);
  return *hello;
}

// This process may have no descriptors but those that it has, for the life of this object.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &old_);
    const posix::Descriptor lowest(::dup(0));
    rlimit none = old_;
    none.rlim_cur = static_cast<rlim_t>(lowest.get());
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &old_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit old_{};
};

void expect_exhausted(const std::function<void()>& call) {
  try {
    call();
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    CHECK_THAT(error.what(), ContainsSubstring("no file descriptor is left") &&
                                 ContainsSubstring("ulimit -n") && ContainsSubstring("rank "));
  }
}

}  // namespace

TEST_CASE("a pair is connected when one of the two first sends, and not before") {
  const Pair pair = make_pair_with({});
  CHECK_FALSE(pair.a->channel(1).is_connected());
  pair.a->progress();
  CHECK(connections(*pair.a, 1) == 0);
  const Bytes data = numbered(1000);
  REQUIRE(pair.a->channel(1).send(data));
  CHECK_FALSE(pair.b->channel(0).is_connected());
  Bytes got(1000);
  until(*pair.a, [&] { return pair.b->channel(0).receive(got); });
  CHECK(got == data);
  CHECK((connections(*pair.a, 1) == 1 && connections(*pair.b, 0) == 1));
}

TEST_CASE("what a rank sent before its end is there for a peer that looks up later") {
  Pair pair = make_pair_with({});
  const Bytes data = numbered(5000);
  REQUIRE(pair.a->channel(1).send(data));
  until(*pair.a, [&] { return pair.a->channel(1).is_drained(); });
  pair.a.reset();
  Bytes got(5000);
  until(*pair.b, [&] { return pair.b->channel(0).receive(got); });
  CHECK(got == data);
}

TEST_CASE("where both ranks connect at once the lower one's connection stays, for the higher one") {
  Played played(1);
  const Bytes first = numbered(300);
  const Bytes second = numbered(200, 5);
  REQUIRE(played.channel().send(first));
  RawConnection theirs = played.accept();  // as rank 0, which has connected as well
  const std::string speech = theirs.hear(tcp::kHelloBytes + first.size());
  CHECK_FALSE(hello_in(speech).follows_another);
  CHECK(speech.substr(tcp::kHelloBytes) == text_of(first));

  RawConnection ours = played.connect();
  const Bytes data = numbered(100, 9);
  ours.say(played.hello() + text_of(data));
  Bytes got(100);
  until(played.transport(), [&] { return played.channel().receive(got); });
  CHECK(got == data);
  CHECK(theirs.is_hung_up());
  REQUIRE(played.channel().send(second));
  const std::string answer = ours.hear(tcp::kHelloBytes + second.size());
  CHECK(hello_in(answer).follows_another);
  CHECK(answer.substr(tcp::kHelloBytes) == text_of(second));
  CHECK(connections(played.transport(), 0) == 1);
}

TEST_CASE("where both ranks connect at once the lower one reads the other connection first") {
  const bool is_seen_at_once = GENERATE(true, false);
  INFO("the other connection is there " << (is_seen_at_once ? "first" : "last"));
  Played played(0);
  const Bytes mine = numbered(50);
  REQUIRE(played.channel().send(mine));
  RawConnection kept = played.accept();
  CHECK(kept.hear(tcp::kHelloBytes + 50).substr(tcp::kHelloBytes) == text_of(mine));

  const Bytes theirs = numbered(1000, 3);  // of which 400 bytes take one way, 600 the other
  Bytes got(1000);
  const auto take_earlier_way = [&] {
    RawConnection earlier = played.connect();
    earlier.say(played.hello() + text_of(std::span(theirs).first(400)));
  };
  const auto take_later_way = [&] {
    kept.say(played.hello(true) + text_of(std::span(theirs).subspan(400)));
  };
  if (is_seen_at_once) {
    take_earlier_way();
    take_later_way();
  } else {
    take_later_way();
    for (int i = 0; i < 20; ++i) REQUIRE_FALSE(played.channel().receive(got));
    take_earlier_way();
  }
  until(played.transport(), [&] { return played.channel().receive(got); });
  CHECK(got == theirs);
  CHECK(connections(played.transport(), 1) == 1);
}

TEST_CASE("ranks that connect to each other at any moment lose and mix nothing") {
  constexpr int kRounds = 60;
  constexpr int kSegments = 5;
  for (int round = 0; round < kRounds; ++round) {
    const Pair pair = make_pair_with({});
    std::array<bool, 2> is_right{};
    const auto play = [&](Transport& transport, int peer) {
      Channel& channel = transport.channel(peer);
      std::vector<Bytes> data;
      for (int i = 0; i < kSegments; ++i)
        data.push_back(numbered(3000 * static_cast<std::size_t>(i + 1), static_cast<unsigned>(i)));
      int sent = 0;
      int received = 0;
      Bytes got(data[0].size());
      bool is_equal = true;
      const auto deadline = in_seconds(30);
      while ((sent < kSegments || received < kSegments || !channel.is_drained()) &&
             Clock::now() < deadline) {
        if (sent < kSegments && channel.send(data[static_cast<std::size_t>(sent)])) ++sent;
        if (received < kSegments && channel.receive(got)) {
          is_equal &= got == data[static_cast<std::size_t>(received++)];
          if (received < kSegments) got.resize(data[static_cast<std::size_t>(received)].size());
        }
        transport.progress();
        std::this_thread::yield();
      }
      is_right[static_cast<std::size_t>(1 - peer)] = is_equal && received == kSegments;
    };
    std::thread other([&] { play(*pair.b, 0); });
    play(*pair.a, 1);
    other.join();
    CHECK((is_right[0] && is_right[1]));
  }
}

TEST_CASE("who cannot reach a rank is told why, and at last that it is gone") {
  // A port of what seems to be another host, on which nobody listens.
  const posix::Descriptor silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::string no_error;
  const auto any_port = posix::resolve("127.0.0.1", 0, no_error).at(0);
  REQUIRE(::bind(silent.get(), any_port.get(), any_port.length()) == 0);
  const std::string address =
      posix::host_and_port("127.0.0.1", posix::local_address(silent).port());
  const auto store = make_local_store();
  store->set("address/0", "elsewhere\n127.0.0.1 " +
                              std::to_string(posix::local_address(silent).port()) + " " +
                              std::to_string(TcpSettings{}.segment_bytes) + " 1 " +
                              tcp::to_text(tcp::random_token()) + " 0\n");
  const auto rank_1 = make_tcp({1, 2, store, in_seconds(20), 0, 2}, TcpSettings{});
  Channel& channel = rank_1->channel(0);
  CHECK(channel.why_unconnected().empty());
  const std::byte data[8] = {};
  REQUIRE(channel.send(data));
  CHECK_FALSE(channel.is_connected());
  CHECK_THAT(channel.why_unconnected(),
             ContainsSubstring("no tcp connection to rank 0 at " + address + " was made") &&
                 ContainsSubstring("KOLO_TCP_HOST"));
  try {
    until(*rank_1, [&] { return channel.is_drained(); });
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kPeerLost);
    CHECK(error.peer() == 0);
    CHECK_THAT(error.what(), ContainsSubstring("cannot connect to rank 0 at " + address) &&
                                 ContainsSubstring("nobody listens there"));
  }
}

TEST_CASE("who has no descriptor left to connect with says so, and goes on once there is one") {
  const Pair pair = make_pair_with({});
  const Bytes data = numbered(10);
  {
    const NoMoreDescriptors scarce;
    expect_exhausted([&] { pair.a->channel(1).send(data); });
  }
  Bytes got(10);
  until(*pair.a, [&] { return pair.b->channel(0).receive(got); });
  CHECK(got == data);
}

TEST_CASE("who has no descriptor left to be connected to says so, and goes on once there is one") {
  const Pair pair = make_pair_with({});
  const Bytes data = numbered(10);
  REQUIRE(pair.a->channel(1).send(data));
  until(*pair.a, [&] { return pair.a->channel(1).is_drained(); });
  Bytes got(10);
  {
    const NoMoreDescriptors scarce;
    expect_exhausted([&] { until(*pair.b, [&] { return pair.b->channel(0).receive(got); }); });
  }
  until(*pair.b, [&] { return pair.b->channel(0).receive(got); });
  CHECK(got == data);
}
