// Order among the connections of a pair. Between hosts one connection may end before data arrives
// that was sent earlier on another. The test acts as the peer and delays data as needed.
#include <chrono>
#include <optional>

#include "test/support/catch.h"
#include "test/transports/tcp/chunks.h"
#include "test/transports/tcp/fake_peer.h"

using namespace kolo;
using namespace kolo::test;

namespace {

// How long the real rank waits for a connection that was not announced. It always waits for
// announced ones.
TcpSettings patience(std::chrono::milliseconds time, int lanes = 1) {
  TcpSettings settings;
  settings.on_its_way = time;
  settings.lanes = lanes;
  return settings;
}

void expect_nothing_yet(FakePeer& played, Bytes& into) {
  for (int i = 0; i < 20; ++i) {
    REQUIRE_FALSE(played.channel().receive(into));
    played.transport().progress();
  }
}

void expect(FakePeer& played, const Bytes& data) {
  Bytes got(data.size());
  until(played.transport(), [&] { return played.channel().receive(got); });
  CHECK(got == data);
}

std::string expect_loss(FakePeer& played) {
  Bytes more(1);
  return loss_in(played.transport(), [&] { return played.channel().receive(more); });
}

// The real rank's connection, after both sides have connected at once.
RawConnection called_by(FakePeer& played, const Bytes& data) {
  REQUIRE(played.channel().send(data));
  RawConnection opened = played.accept();
  while (!played.channel().is_drained()) played.transport().progress();
  opened.hear(tcp::kHelloBytes);
  while (!opened.hear_now().empty()) {
  }
  return opened;
}

}  // namespace

TEST_CASE("the end of one connection does not hide the data that its peer sent on another") {
  const int real = GENERATE(0, 1);
  const bool is_announced = GENERATE(true, false);
  INFO("rank " << real << (is_announced ? ", told so" : ", not told"));
  FakePeer played(real, patience(is_announced ? std::chrono::milliseconds(0)
                                              : std::chrono::milliseconds(600'000)));
  const Bytes data = numbered(5000);
  Bytes got(data.size());
  {
    RawConnection first = called_by(played, numbered(100));
    if (is_announced) first.say(played.hello(true));
  }  // the peer has ended
  expect_nothing_yet(played, got);
  {
    RawConnection second = played.connect();
    second.say(played.hello() + text_of(data));
  }
  expect(played, data);
  CHECK_THAT(expect_loss(played), ContainsSubstring("has ended"));
}

TEST_CASE("a rank that ends announces on each connection that another one has more data") {
  const int real = GENERATE(0, 1);
  INFO("rank " << real);
  FakePeer played(real);
  RawConnection ours = called_by(played, numbered(100));
  RawConnection theirs = played.connect();
  const Bytes data = numbered(300, 2);
  theirs.say(played.hello() + text_of(data));
  expect(played, data);
  played.end();
  const auto hello = hello_in(theirs.hear(tcp::kHelloBytes));
  CHECK(hello.follows_another);
  CHECK(hello.from == real);
  CHECK(theirs.is_hung_up());
  CHECK(ours.is_hung_up());
}

TEST_CASE("a rank that has sent no data on its own connection announces no other one") {
  FakePeer played(1);
  Bytes got(10);
  std::optional<RawConnection> ours;
  until(played.transport(), [&] {
    static_cast<void>(played.channel().receive(got));
    if (!ours && played.has_called()) ours = played.accept();
    return ours.has_value();
  });
  CHECK_FALSE(hello_in(ours->hear(tcp::kHelloBytes)).follows_another);
  RawConnection theirs = played.connect();
  theirs.say(played.hello() + text_of(numbered(10)));
  expect(played, numbered(10));
  REQUIRE(played.channel().send(numbered(5)));
  CHECK_FALSE(hello_in(theirs.hear(tcp::kHelloBytes)).follows_another);
}

TEST_CASE("the peer is lost if its connection ends and no other one follows") {
  const int real = GENERATE(0, 1);
  FakePeer played(real, patience(std::chrono::milliseconds(1)));
  called_by(played, numbered(100));
  CHECK_THAT(expect_loss(played),
             ContainsSubstring("receive from rank") && ContainsSubstring("closed the connection"));
}

TEST_CASE("the end of all lanes is no loss while more segments are announced") {
  FakePeer played(0, patience(std::chrono::milliseconds(0), 2));
  const Bytes data = numbered(tcp::kChunkBytes + 600);
  Bytes got(data.size());
  {
    RawConnection lane = called_by(played, numbered(100));  // the peer opens the other lanes
    lane.say(played.hello() + chunk(0, 0, std::span(data).first(tcp::kChunkBytes)) + goodbye(1));
  }
  expect_nothing_yet(played, got);
  {
    RawConnection lane = played.connect();
    lane.say(played.hello(false, 1) + chunk(0, tcp::kChunkBytes, std::span(data).last(600)) +
             goodbye(1));
  }
  until(played.transport(), [&] { return played.channel().receive(got); });
  CHECK(got == data);
  CHECK_THAT(expect_loss(played), ContainsSubstring("has ended"));
}

TEST_CASE("a rank waits for more lanes if all lanes have ended without a goodbye") {
  FakePeer played(0, patience(std::chrono::minutes(10), 2));
  const Bytes data = numbered(tcp::kChunkBytes + 600);
  Bytes got(data.size());
  {
    RawConnection lane = called_by(played, numbered(100));  // the peer opens the other lanes
    lane.say(played.hello() + chunk(0, 0, std::span(data).first(tcp::kChunkBytes)));
  }
  expect_nothing_yet(played, got);
  {
    RawConnection lane = played.connect();
    lane.say(played.hello(false, 1) + chunk(0, tcp::kChunkBytes, std::span(data).last(600)));
  }
  until(played.transport(), [&] { return played.channel().receive(got); });
  CHECK(got == data);
}

TEST_CASE("a refused lane is no loss while the peer's own lane may still arrive") {
  FakePeer played(0, patience(std::chrono::minutes(10), 2));
  const Bytes data = numbered(1000);
  Bytes got(data.size());
  REQUIRE(played.channel().send(numbered(100)));
  played.accept().hear(1);  // and closes it
  expect_nothing_yet(played, got);
  RawConnection lane = played.connect();
  lane.say(played.hello() + chunk(0, 0, data));
  until(played.transport(), [&] { return played.channel().receive(got); });
  CHECK(got == data);
}

TEST_CASE("a rank that ends sends the number of segments on every lane") {
  FakePeer played(0, patience(std::chrono::seconds(1), 2));
  std::vector<RawConnection> lanes;
  for (std::uint32_t i = 0; i < 2; ++i) {
    lanes.push_back(played.connect());
    lanes.back().say(played.hello(false, i));
  }
  until(played.transport(), [&] {
    static_cast<void>(played.channel().view(1));
    return played.channel().statistics().connections == 2;
  });
  const Bytes data = numbered(100);
  for (int i = 0; i < 3; ++i) REQUIRE(played.channel().send(data));
  played.end();
  std::size_t chunks = 0;
  for (auto& lane : lanes) {
    std::string text = lane.hear_all();
    CHECK(hello_in(text).from == 0);
    text.erase(0, tcp::kHelloBytes);
    for (; text.size() > goodbye(3).size(); ++chunks) text.erase(0, chunk(0, 0, data).size());
    CHECK((text == goodbye(3)));
  }
  CHECK(chunks == 3);
}

TEST_CASE("a lane that the peer refuses loses no chunks") {
  // otherwise the sender detects the end itself
  const bool is_noticed_first = GENERATE(true, false);
  FakePeer played(0, patience(std::chrono::milliseconds(0), 2));
  RawConnection lane = played.connect();
  lane.say(played.hello());
  Bytes got(10);
  until(played.transport(), [&] {
    static_cast<void>(played.channel().receive(got));
    return played.channel().statistics().connections == 2;  // this rank has opened the second lane
  });
  CHECK(hello_in(played.accept().hear(tcp::kHelloBytes)).lane == 1);  // and closes it
  if (is_noticed_first) expect_nothing_yet(played, got);
  std::string expected;
  for (std::uint32_t i = 0; i < 6; ++i) {
    const Bytes data = numbered(1000, i);
    expected += chunk(i, 0, data);
    REQUIRE(played.channel().send(data));
    until(played.transport(), [&] { return played.channel().is_drained(); });
  }
  CHECK((lane.hear(tcp::kHelloBytes + expected.size()).substr(tcp::kHelloBytes) == expected));
  lane.say(chunk(0, 0, numbered(10)));
  expect(played, numbered(10));
}
