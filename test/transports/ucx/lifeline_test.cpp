// The end of a rank, as those who watch it hear of it.
#include "transports/ucx/lifeline.h"

#include <optional>

#include "test/support/catch.h"
#include "transports/error.h"

using namespace kolo;
using ucx::Farewell;
using ucx::Lifelines;

TEST_CASE("who is done says farewell to each that watches, by what it says of itself") {
  posix::Epoll epoll;
  Lifelines watcher(2, epoll);
  Lifelines watched(2, epoll);
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

TEST_CASE("who dies says nothing, and its end is heard at once") {
  posix::Epoll epoll;
  Lifelines watcher(2, epoll);
  std::optional<Lifelines> watched(std::in_place, 2, epoll);
  REQUIRE(watcher.watch(1, watched->name(), {}));
  watched.reset();
  CHECK_FALSE(watcher.is_alive(1));
  const auto news = watcher.hear(1);
  CHECK_FALSE(news.farewell.has_value());
  CHECK(news.is_end);
}

TEST_CASE("who is gone already cannot be watched") {
  posix::Epoll epoll;
  Lifelines watcher(2, epoll);
  std::optional<Lifelines> watched(std::in_place, 2, epoll);
  const std::string name = watched->name();
  watched.reset();
  try {
    watcher.watch(1, name, {});
    FAIL("nobody listens there");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kPeerLost);
  }
}
