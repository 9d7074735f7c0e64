// Stores that hang: who must not wait does not, everybody else waits once.
#include <string>
#include <thread>

#include "test/support/catch.h"
#include "test/transports/hanging_server.h"
#include "test/transports/store_table.h"
#include "transports/error.h"
#include "transports/exchange.h"
#include "transports/rendezvous.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr double kPatience = 20;  // what a store is given to connect, and waits later on

std::shared_ptr<Store> connect(const HangingServer& server, double seconds = kPatience) {
  return connect_tcp_store("127.0.0.1", server.port(), in_seconds(seconds), 0);
}

}  // namespace

TEST_CASE("a server that hangs holds up no note, no question, no last word and no goodbye") {
  HangingServer server;
  auto store = connect(server);
  store->join(0);
  store->note("key", "value");
  const auto answered = store->ask("key");
  REQUIRE(wait_for_answers(*store, {&answered, 1}, in_seconds(20)));
  CHECK(answered->value == "value");
  server.hang();

  const auto start = Clock::now();
  const std::string more_than_sockets_take(1 << 20, 'x');
  const auto asked = store->ask("key");
  for (int i = 0; i < 20; ++i) store->note("key", more_than_sockets_take);
  CHECK_FALSE(store->failure());
  CHECK_FALSE(wait_for_answers(*store, {&asked, 1}, in_seconds(0.05)));
  CHECK(store->post_failure("rank 0: over") == "rank 0: over");
  CHECK(store->failure() == "rank 0: over");
  CHECK(asked->has_come);  // that there is none
  store->leave();
  store.reset();
  CHECK(Clock::now() - start < std::chrono::seconds(10));  // of kPatience
}

TEST_CASE("a server that hangs counts as gone after a while, whoever has only left a note there") {
  HangingServer server;
  const auto store = connect(server, 2);
  server.hang();
  store->note("key", "value");
  const auto deadline = in_seconds(20);
  while (!store->failure() && Clock::now() < deadline) std::this_thread::yield();
  CHECK_THAT(store->failure().value_or("none"),
             ContainsSubstring("rank 0 is gone, which serves the store") &&
                 ContainsSubstring("has not answered for 3.0 s"));
}

TEST_CASE("who waits for others over a server that hangs is told so soon after the deadline") {
  HangingServer server;
  const auto store = connect(server);
  const auto other = connect(server);
  std::thread stopper([&] {
    other->get("here/1", in_seconds(20));
    server.hang();
  });
  const auto start = Clock::now();
  std::string said;
  try {
    exchange(*store, 1, 4, "here", "one", in_seconds(2), "join the job");
  } catch (const Error& error) {
    said = error.what();
  }
  stopper.join();
  CHECK_THAT(said, ContainsSubstring(" s for rank 0, at least, of 4 to join the job (" +
                                     store->describe() + ", which does not answer)"));
  CHECK(Clock::now() - start < std::chrono::seconds(10));  // of kPatience
}
