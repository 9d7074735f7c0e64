// Connections of tcp. A channel connects at its first use. Both ends agree on the order of the
// bytes, no matter which rank connects first. The peer is real, or a fake that the test drives byte
// by byte.
#include <sys/socket.h>
#include <array>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/tcp/fake_peer.h"
#include "test/transports/tcp/pair.h"
#include "transports/error.h"
#include "transports/tcp/hello.h"

using namespace kolo;
using namespace kolo::test;

namespace {

std::uint64_t connections(Transport& transport, int peer) {
  return transport.channel(peer).statistics().connections;
}

}  // namespace

TEST_CASE("a pair connects at the first send, and not before") {
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

TEST_CASE("data sent before a rank's end arrives at a peer that looks later") {
  Pair pair = make_pair_with({});
  const Bytes data = numbered(5000);
  REQUIRE(pair.a->channel(1).send(data));
  until(*pair.a, [&] { return pair.a->channel(1).is_drained(); });
  pair.a.reset();
  Bytes got(5000);
  until(*pair.b, [&] { return pair.b->channel(0).receive(got); });
  CHECK(got == data);
}

TEST_CASE("the lower rank's connection is kept for the higher rank if both ranks connect at once") {
  FakePeer played(1);
  const Bytes first = numbered(300);
  const Bytes second = numbered(200, 5);
  REQUIRE(played.channel().send(first));
  RawConnection theirs = played.accept();  // acts as rank 0, which has connected as well
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

TEST_CASE("the lower rank reads the other connection first if both ranks connect at once") {
  const bool is_seen_at_once = GENERATE(true, false);
  INFO("the other connection is there " << (is_seen_at_once ? "first" : "last"));
  FakePeer played(0);
  const Bytes mine = numbered(50);
  REQUIRE(played.channel().send(mine));
  RawConnection kept = played.accept();
  CHECK(kept.hear(tcp::kHelloBytes + 50).substr(tcp::kHelloBytes) == text_of(mine));

  const Bytes theirs = numbered(1000, 3);  // 400 bytes take one connection, 600 the other
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

TEST_CASE("ranks that connect to each other at any time neither lose nor reorder data") {
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

TEST_CASE("the error for an unreachable rank gives the reason and the possible causes") {
  // A port of an apparently remote host on which nothing listens.
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
             ContainsSubstring("no tcp connection to rank 0 was made, at " + address) &&
                 ContainsSubstring("KOLO_TCP_HOST"));
  CHECK_THAT(loss_in(*rank_1, [&] { return channel.is_drained(); }),
             ContainsSubstring("rank 1: cannot connect to rank 0 at " + address + " (tcp)") &&
                 ContainsSubstring("refused") && ContainsSubstring("has ended") &&
                 ContainsSubstring("a firewall refuses") && ContainsSubstring("KOLO_TCP_PORTS"));
  CHECK_THAT(channel.why_unconnected(), ContainsSubstring(address + " (Connection refused)"));
}

TEST_CASE("the error for a refused connection on the same host says that the rank has ended") {
  Pair pair = make_pair_with({});
  pair.a.reset();
  Bytes got(1);
  CHECK_THAT(loss_in(*pair.b, [&] { return pair.b->channel(0).receive(got); }),
             ContainsSubstring("cannot connect to rank 0 at ") &&
                 ContainsSubstring("no process listens there any more") &&
                 ContainsSubstring("look at its last output"));
  CHECK(pair.b->channel(0).why_unconnected().empty());
}

TEST_CASE("a sleeping rank wakes when it must try a failed connection again") {
  FakePeer played(1);
  Bytes got(10);
  int tries = 0;
  const auto deadline = in_seconds(60);
  while (tries < 3) {
    REQUIRE(Clock::now() < deadline);
    REQUIRE_FALSE(played.channel().receive(got));
    if (played.has_called()) {
      while (!played.transport().arm()) played.transport().progress();
      played.accept();  // and closes it
      ++tries;
      continue;
    }
    if (!played.transport().arm()) {
      played.transport().progress();
      continue;
    }
    // Only the timer can wake this sleep: without it, poll() would time out.
    pollfd watched{played.transport().descriptor(), POLLIN, 0};
    REQUIRE(::poll(&watched, 1, 20'000) == 1);
  }
  RawConnection peer = played.connect();
  peer.say(played.hello() + text_of(numbered(10)));
  until(played.transport(), [&] { return played.channel().receive(got); });
  CHECK(got == numbered(10));
}

TEST_CASE(
    "another program at a rank's port that closes the connection is not taken for the rank's end") {
  FakePeer played(1);
  Bytes got(10);
  for (int i = 0; i < 3; ++i) {
    until(played.transport(), [&] {
      static_cast<void>(played.channel().receive(got));
      return played.has_called();
    });
    RawConnection program = played.accept();
    if (i == 1) program.hear(tcp::kHelloBytes);
  }
  until(played.transport(), [&] {
    static_cast<void>(played.channel().receive(got));
    return !played.channel().is_connected();
  });
  CHECK_THAT(played.channel().why_unconnected(),
             ContainsSubstring("closed the connection before its hello") &&
                 ContainsSubstring("another program"));
  RawConnection peer = played.connect();
  peer.say(played.hello() + text_of(numbered(10)));
  until(played.transport(), [&] { return played.channel().receive(got); });
  CHECK(got == numbered(10));
}

TEST_CASE(
    "a peer that ends in the middle of its hello is reported as ended, not as an unknown client") {
  FakePeer played(0);
  REQUIRE(played.channel().send(numbered(10)));
  {
    RawConnection peer = played.accept();
    peer.hear(tcp::kHelloBytes + 10);
    peer.say(played.hello().substr(0, 30));
  }
  Bytes got(1);
  CHECK_THAT(loss_in(played.transport(), [&] { return played.channel().receive(got); }),
             ContainsSubstring("closed the connection") && !ContainsSubstring("another program"));
}

TEST_CASE("a connection that was refused before it carried data loses nothing") {
  FakePeer played(1);
  Bytes got(10);
  until(played.transport(), [&] {  // sends the hello, and nothing else
    static_cast<void>(played.channel().receive(got));
    return played.has_called() && played.channel().is_connected();
  });
  static_cast<void>(played.accept().hear(tcp::kHelloBytes));  // and closes it
  const Bytes data = numbered(1000);
  REQUIRE(played.channel().send(data));
  until(played.transport(), [&] { return played.has_called(); });
  CHECK(played.accept().hear(tcp::kHelloBytes + 1000).substr(tcp::kHelloBytes) == text_of(data));
}
