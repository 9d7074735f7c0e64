// Pending connections of a bootstrap listener, and their timeouts.
#include "transports/posix/pending_connections.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/support/unix_clients.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr std::string_view kHello = "hello, 1";

// A listener with the hello above, and the clients that it has accepted.
struct Listener {
  explicit Listener(Clock::duration patience = std::chrono::hours(1), std::size_t expected = 0)
      : callers(house(), expected, patience) {}

  posix::PendingConnections::Handlers house() {
    posix::PendingConnections::Handlers house;
    house.hello_bytes = kHello.size();
    house.is_hello = [](auto said) {
      return std::memcmp(said.data(), kHello.data(), kHello.size()) == 0;
    };
    house.let_in = [this](auto, posix::Descriptor socket, posix::Descriptor passed) {
      let_in.emplace_back(std::move(socket), std::move(passed));
    };
    house.watch = [this](int) { ++watched; };
    return house;
  }

  void look() { callers.look(listener); }
  posix::Descriptor come() {
    return come_to(listener.name(), [this] { look(); });
  }
  posix::Descriptor say(std::string_view text) {
    posix::Descriptor one = come();
    posix::send_message(one.get(), bytes_of(text), listener.descriptor());
    return one;
  }

  posix::UnixListener listener{16};
  std::vector<std::pair<posix::Descriptor, posix::Descriptor>> let_in;
  int watched = 0;
  posix::PendingConnections callers;
};

}  // namespace

TEST_CASE("a client with a hello is accepted with its descriptor, and a silent one stays pending") {
  Listener listener;
  const auto silent = listener.come();
  const auto rank = listener.say(kHello);
  listener.look();
  REQUIRE(listener.let_in.size() == 1);
  CHECK(listener.let_in[0].second.is_open());
  CHECK_FALSE(listener.callers.is_empty());
  CHECK(listener.watched == 1);
  posix::send_message(silent.get(), bytes_of(kHello));
  listener.look();
  CHECK(listener.let_in.size() == 2);
  CHECK_FALSE(listener.let_in.back().second.is_open());
  CHECK(listener.callers.is_empty());
  CHECK_FALSE(is_hung_up(silent));
  CHECK_FALSE(is_hung_up(rank));
}

TEST_CASE("a client that sends anything else or closes is dropped at once") {
  for (const std::string& speech :
       {std::string("\n"), std::string(kHello.substr(0, 7)), std::string("hello, 2"),
        std::string(kHello) + "1", std::string(40'000, 'x'), std::string()}) {
    CAPTURE(speech.size());
    Listener listener;
    const auto unknown_client = listener.say(speech);
    listener.come().close();
    listener.look();
    CHECK(listener.callers.is_empty());
    CHECK(listener.let_in.empty());
    CHECK(is_hung_up(unknown_client));
  }
}

TEST_CASE(
    "a client that is silent for too long is dropped, unless it has sent its hello meanwhile") {
  Listener listener(Clock::duration{0});
  const auto silent = listener.come();
  const auto rank = listener.come();
  listener.look();
  posix::send_message(rank.get(), bytes_of(kHello));
  listener.look();
  listener.look();  // by then time has passed
  CHECK(is_hung_up(silent));
  CHECK(listener.let_in.size() == 1);
  CHECK_FALSE(is_hung_up(rank));
}

TEST_CASE(
    "the last of many silent clients stay, and so does a client that sends its hello just in "
    "time") {
  constexpr std::size_t kExpected = 3;
  constexpr std::size_t kStay = posix::PendingConnections::kMostUnknownClients + kExpected;
  Listener listener(std::chrono::hours(1), kExpected);
  std::vector<posix::Descriptor> clients;
  for (std::size_t i = 0; i < kStay; ++i) clients.push_back(listener.come());
  listener.look();
  listener.look();
  posix::send_message(clients[1].get(), bytes_of(kHello));
  for (std::size_t i = 0; i < 5; ++i) {
    clients.push_back(listener.come());
    listener.look();
  }
  CHECK(listener.let_in.size() == 1);
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const bool is_gone = is_hung_up(clients[i]);
    CHECK(is_gone == (i < 5 && i != 1));
    dropped += is_gone ? 1 : 0;
  }
  CHECK(dropped == clients.size() - kStay - 1);
}

TEST_CASE("a look accepts a bounded number of clients and reports that more are waiting") {
  Listener listener;
  posix::UnixListener long_queue(1000);
  std::vector<posix::Descriptor> clients;
  for (std::size_t i = 0; i < posix::PendingConnections::kMostAccepted; ++i)
    clients.push_back(come_to(long_queue.name()));
  clients.push_back(come_to(long_queue.name()));
  listener.callers.look(long_queue);
  CHECK(listener.callers.has_left_some());
  listener.callers.look(long_queue);
  CHECK_FALSE(listener.callers.has_left_some());
  CHECK(listener.callers.why_kept_out().empty());
}
