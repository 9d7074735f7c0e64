// Threads of one process that open the store of the environment at the same time.
#include <poll.h>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "test/transports/support/environment.h"
#include "transports/error.h"
#include "transports/posix/socket.h"
#include "transports/rendezvous.h"

using namespace kolo;
using namespace kolo::test;

TEST_CASE("threads that open the store of the environment at the same time get the same one") {
  constexpr int kThreads = 8;
  const int rank = GENERATE(0, 1);
  // The port was free a moment ago: the test has to choose one, as a user would.
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  std::optional<TcpStoreServer> server;
  if (rank != 0) server.emplace("127.0.0.1", port, 2);
  std::latch all_are_there(kThreads);
  std::vector<std::future<std::shared_ptr<Store>>> stores;
  for (int i = 0; i < kThreads; ++i) {
    stores.push_back(std::async(std::launch::async, [&] {
      all_are_there.arrive_and_wait();
      return store_from_environment({rank, 2, rank, 2}, in_seconds(20));
    }));
  }
  const std::shared_ptr<Store> first = stores.front().get();
  for (std::size_t i = 1; i < stores.size(); ++i) CHECK(stores[i].get() == first);
}

TEST_CASE(
    "a thread that waits for another thread's connection to the store keeps its own deadline") {
  posix::Descriptor listener = posix::listen_on("127.0.0.1", 0);  // which nothing accepts from
  const auto port = posix::local_address(listener).port();
  const Environment environment({{"KOLO_STORE", "tcp://127.0.0.1:" + std::to_string(port)}});
  const LaunchEnvironment who{1, 2, 1, 2};
  auto connecting =
      std::async(std::launch::async, [&] { return store_from_environment(who, in_seconds(60)); });
  pollfd watched{listener.get(), POLLIN, 0};
  REQUIRE(::poll(&watched, 1, 60'000) == 1);  // the first thread connects
  std::string text;
  try {
    store_from_environment(who, in_seconds(0));
  } catch (const Error& error) {
    text = error.what();
    CHECK(error.code() == ErrorCode::kDeadline);
  }
  CHECK_THAT(text, ContainsSubstring("another thread of this process"));
  listener = {};
  const TcpStoreServer server("127.0.0.1", port);
  const std::shared_ptr<Store> store = connecting.get();
  CHECK(store_from_environment(who, in_seconds(60)) == store);
}

TEST_CASE("a thread connects anew after another thread failed to reach the store") {
  posix::Descriptor listener = posix::listen_on("127.0.0.1", 0);
  const auto port = posix::local_address(listener).port();
  const Environment environment({{"KOLO_STORE", "tcp://127.0.0.1:" + std::to_string(port)}});
  const LaunchEnvironment who{1, 2, 1, 2};
  CHECK_THROWS_AS(store_from_environment(who, in_seconds(0)), Error);
  listener = {};
  const TcpStoreServer server("127.0.0.1", port);
  CHECK(store_from_environment(who, in_seconds(60)) != nullptr);
}
