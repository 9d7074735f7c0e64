// The end of a rank, as reported to the ranks that watch it.
#include "transports/ucx/liveness.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "transports/error.h"

using namespace kolo;
using ucx::Farewell;
using ucx::HostLiveness;

TEST_CASE("a rank that ends says farewell to each watching rank") {
  posix::Epoll epoll;
  HostLiveness watcher(2, epoll);
  HostLiveness watched(2, epoll);
  REQUIRE(watcher.watch(1, watched.name(), {7, 0, 0, 0}));
  CHECK(watcher.is_alive(1));
  watched.part([](const Farewell& who) -> std::optional<Farewell> {
    CHECK(who.token == 7);
    CHECK(who.rank == 0);
    return Farewell{8, 1, 30, 20};
  });
  CHECK_FALSE(watcher.is_alive(1));
  const auto first = watcher.hear(1);
  REQUIRE(first.farewell.has_value());
  CHECK(first.farewell->token == 8);
  CHECK(first.farewell->sent == 30);
  CHECK(first.farewell->taken == 20);
  CHECK_FALSE(first.is_end);
  CHECK(watcher.hear(1).is_end);
  CHECK_FALSE(watcher.is_alive(1));
}

TEST_CASE("a rank that dies says nothing, and its end is reported at once") {
  posix::Epoll epoll;
  HostLiveness watcher(2, epoll);
  std::optional<HostLiveness> watched(std::in_place, 2, epoll);
  REQUIRE(watcher.watch(1, watched->name(), {}));
  watched.reset();
  CHECK_FALSE(watcher.is_alive(1));
  const auto news = watcher.hear(1);
  CHECK_FALSE(news.farewell.has_value());
  CHECK(news.is_end);
}

TEST_CASE("a rank that is gone cannot be watched") {
  posix::Epoll epoll;
  HostLiveness watcher(2, epoll);
  std::optional<HostLiveness> watched(std::in_place, 2, epoll);
  const std::string name = watched->name();
  watched.reset();
  try {
    watcher.watch(1, name, {});
    FAIL("watch succeeded although no process listens there");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kPeerLost);
  }
}

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::optional<Farewell> farewell_to_rank_0(const Farewell& who) {
  return who.token == 7 && who.rank == 0 ? std::optional(Farewell{8, 1, 30, 20}) : std::nullopt;
}

}  // namespace

TEST_CASE("unknown clients neither block a rank's peers nor get its farewell") {
  posix::Epoll epoll;
  HostLiveness watcher(2, epoll);
  HostLiveness watched(2, epoll);
  std::vector<posix::Descriptor> clients;
  const auto come = [&](const std::string& speech) {
    auto unknown_client = posix::connect_unix(watched.name());
    if (!unknown_client) return;
    if (!speech.empty())
      posix::send_message(unknown_client->get(), bytes_of(speech), unknown_client->get());
    clients.push_back(std::move(*unknown_client));
  };
  for (int i = 0; i < 25; ++i) {
    for (const std::string& speech : {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"),
                                      std::string(16, '\7'), std::string(10'000, 'x')})
      come(speech);
  }
  REQUIRE(clients.size() == 100);
  REQUIRE(watcher.watch(1, watched.name(), {7, 0, 0, 0}));
  for (int i = 0; i < 10; ++i) come("and more of them");
  CHECK(watcher.is_alive(1));
  watched.part(farewell_to_rank_0);
  const auto news = watcher.hear(1);
  REQUIRE(news.farewell.has_value());
  CHECK(news.farewell->sent == 30);
  for (const auto& unknown_client : clients) {
    Farewell heard;
    const auto message =
        posix::receive_message(unknown_client.get(), std::as_writable_bytes(std::span(&heard, 1)));
    CHECK(message.what == posix::Received::kClosed);
  }
}

TEST_CASE("an endless stream of unknown clients does not keep a rank from ending") {
  posix::Epoll epoll;
  HostLiveness watcher(2, epoll);
  HostLiveness watched(2, epoll);
  REQUIRE(watcher.watch(1, watched.name(), {7, 0, 0, 0}));
  std::atomic<int> knocks{0};
  std::thread scan([&, name = watched.name()] {
    try {
      for (;; ++knocks) posix::connect_unix(name);
    } catch (const Error&) {  // the listener is closed
    }
  });
  while (knocks.load() < 100) std::this_thread::yield();
  watched.part(farewell_to_rank_0);
  scan.join();
  CHECK(watcher.hear(1).farewell.has_value());
}

TEST_CASE("an impostor's messages are no farewell, and its end counts as the rank's end") {
  posix::Epoll epoll;
  HostLiveness watcher(2, epoll);
  posix::UnixListener impostor(4);
  REQUIRE(watcher.watch(1, impostor.name(), {7, 0, 0, 0}));
  auto line = impostor.accept();
  REQUIRE(line);
  for (const std::string& speech : {std::string("x"), std::string(10'000, 'x')}) {
    posix::send_message(line->get(), bytes_of(speech), line->get());
    const auto news = watcher.hear(1);
    CHECK_FALSE(news.farewell.has_value());
    CHECK_FALSE(news.is_end);
  }
  line.reset();
  CHECK(watcher.hear(1).is_end);
}
