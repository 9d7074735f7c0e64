// tcp ranks in a process without free file descriptors: independent work continues, and everything
// else reports the reason.
#include <poll.h>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/support/descriptor_limit.h"
#include "test/transports/tcp/chunks.h"
#include "test/transports/tcp/fake_peer.h"
#include "test/transports/tcp/pair.h"

using namespace kolo;
using namespace kolo::test;

namespace {

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

// Lets the rank handle all pending events, so that later events are new.
void settle(Transport& transport) {
  for (int i = 0; i < 100; ++i) {
    transport.progress();
    if (transport.arm()) return;
  }
  FAIL("it never rests");
}

bool is_woken(Transport& transport) {
  pollfd watched{transport.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

}  // namespace

TEST_CASE(
    "a rank without a free descriptor to connect reports it, and continues once one is free") {
  const Pair pair = make_pair_with({});
  const Bytes data = numbered(10);
  {
    const DescriptorLimit scarce;
    expect_exhausted([&] { pair.a->channel(1).send(data); });
  }
  Bytes got(10);
  until(*pair.a, [&] { return pair.b->channel(0).receive(got); });
  CHECK(got == data);
}

TEST_CASE("a rank without a free descriptor to accept reports it, and continues once one is free") {
  const Pair pair = make_pair_with({});
  const Bytes data = numbered(10);
  REQUIRE(pair.a->channel(1).send(data));
  until(*pair.a, [&] { return pair.a->channel(1).is_drained(); });
  Bytes got(10);
  {
    const DescriptorLimit scarce;
    expect_exhausted([&] { until(*pair.b, [&] { return pair.b->channel(0).receive(got); }); });
  }
  until(*pair.b, [&] { return pair.b->channel(0).receive(got); });
  CHECK(got == data);
}

TEST_CASE(
    "connections that cannot be accepted for lack of descriptors do not wake or fail an idle "
    "rank") {
  const Pair pair = make_pair_with({});
  const Bytes data = numbered(10);
  REQUIRE(pair.a->channel(1).send(data));
  until(*pair.a, [&] { return pair.a->channel(1).is_drained(); });
  {
    const DescriptorLimit scarce;
    for (int i = 0; i < 1000; ++i) pair.b->progress();
    settle(*pair.b);
    CHECK_FALSE(is_woken(*pair.b));
    CHECK_FALSE(pair.b->channel(0).is_connected());
    CHECK_THAT(pair.b->channel(0).why_unconnected(),
               ContainsSubstring("no file descriptor is left for a tcp connection") &&
                   ContainsSubstring("ulimit -n"));
  }
  until(*pair.b, [&] { return pair.b->channel(0).is_connected(); });
  Bytes got(10);
  until(*pair.b, [&] { return pair.b->channel(0).receive(got); });
  CHECK(got == data);
}

TEST_CASE("a silent unknown client gives up its descriptor for a rank's connection") {
  const bool is_called = GENERATE(true, false);
  FakePeer played(0);
  RawConnection unknown_client = played.connect();
  settle(played.transport());
  const Bytes data = numbered(20);
  if (is_called) {
    RawConnection peer = played.connect();
    peer.say(played.hello() + text_of(data));
    Bytes got(20);
    const DescriptorLimit scarce;
    until(played.transport(), [&] { return played.channel().receive(got); });
    CHECK(got == data);
  } else {
    {
      const DescriptorLimit scarce;
      REQUIRE(played.channel().send(data));
      until(played.transport(), [&] { return played.channel().is_drained(); });
    }
    RawConnection peer = played.accept();
    CHECK(peer.hear(tcp::kHelloBytes + data.size()).substr(tcp::kHelloBytes) == text_of(data));
  }
  CHECK(unknown_client.is_hung_up());
}

TEST_CASE(
    "a client that has sent its hello is not dropped as silent when another client connects") {
  FakePeer played(0);
  RawConnection peer = played.connect();
  settle(played.transport());  // it is accepted, and silent
  const Bytes data = numbered(20);
  peer.say(played.hello() + text_of(data));
  RawConnection other = played.connect();
  Bytes got(20);
  {
    const DescriptorLimit scarce;
    until(played.transport(), [&] { return played.channel().receive(got); });
  }
  CHECK(got == data);
}

TEST_CASE("a peer whose hello is under way is not dropped where descriptors run out") {
  TcpSettings settings;
  settings.hello_timeout = std::chrono::hours(1);
  FakePeer played(0, settings);
  RawConnection peer = played.connect();
  settle(played.transport());  // it is accepted, and silent
  const Bytes data = numbered(20);
  {
    const DescriptorLimit scarce;
    REQUIRE(played.channel().send(data));
    for (int i = 0; i < 1000; ++i) played.transport().progress();
    CHECK_FALSE(played.channel().is_connected());
    peer.say(played.hello());
    until(played.transport(), [&] { return played.channel().is_drained(); });
  }
  CHECK(peer.hear(tcp::kHelloBytes + data.size()).substr(tcp::kHelloBytes) == text_of(data));
}

TEST_CASE("a rank that waits for a lane without a free descriptor reports it") {
  TcpSettings settings;
  settings.lanes = 2;
  FakePeer played(0, settings);
  REQUIRE(played.channel().send(numbered(1)));
  RawConnection first = played.accept();
  RawConnection second = played.connect();
  const Bytes data = numbered(tcp::kChunkBytes + 40);
  first.say(played.hello() + chunk(0, 0, std::span(data).first(tcp::kChunkBytes)));
  second.say(played.hello(false, 1) + chunk(0, tcp::kChunkBytes, std::span(data).last(40)));
  Bytes got(data.size());
  {
    const DescriptorLimit scarce;
    expect_exhausted(
        [&] { until(played.transport(), [&] { return played.channel().receive(got); }); });
  }
  until(played.transport(), [&] { return played.channel().receive(got); });
  CHECK(got == data);
}

TEST_CASE(
    "a rank that ends sends the remaining data to some peers although it has no descriptor for "
    "others") {
  const auto first = posix::listen_on("127.0.0.1", 0);
  const auto second = posix::listen_on("127.0.0.1", 0);
  TcpSettings settings;
  settings.segment_bytes = 64 * 1024;
  settings.buffer_bytes = 4096;
  const auto store = make_local_store();
  int rank = 0;
  for (const auto* listener : {&first, &second}) {
    store->set("address/" + std::to_string(++rank),
               "elsewhere\n127.0.0.1 " + std::to_string(posix::local_address(*listener).port()) +
                   " 65536 1 " + tcp::to_text(tcp::random_token()) + " 0\n");
  }
  auto transport = make_tcp({0, 3, store, in_seconds(30), 0, 3}, settings);
  const Bytes data = numbered(settings.segment_bytes);
  const int segments = 3;
  for (int i = 0; i < segments; ++i) REQUIRE(transport->channel(2).send(data));
  pollfd watched{second.get(), POLLIN, 0};
  REQUIRE(::poll(&watched, 1, 20'000) == 1);
  RawConnection peer(posix::accept_from(second));
  std::string text;
  {
    const DescriptorLimit scarce;
    expect_exhausted([&] { transport->channel(1).send(data); });
    std::thread end([&] { transport.reset(); });
    text = peer.hear_all();
    end.join();
  }
  CHECK(text.size() == tcp::kHelloBytes + segments * data.size());
}
