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

TEST_CASE("a survivor waits for the next job while the store of the failed one lingers") {
  posix::Descriptor listener = posix::listen_on("127.0.0.1", 0);
  const auto port = posix::local_address(listener).port();
  listener = {};
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  std::optional<TcpStoreServer> old(std::in_place, "127.0.0.1", port);
  const auto lingering = connect_tcp_store("127.0.0.1", port, in_seconds(20));
  store_from_environment({2, 3, 2, 3}, in_seconds(20))->post_failure("rank 1 is gone");
  // Its number is another one in the next job.
  CHECK_THROWS_WITH(store_from_environment({1, 2, 1, 2}, in_seconds(0.3)),
                    ContainsSubstring("it still serves a job that has failed: rank 1 is gone") &&
                        ContainsSubstring("start rank 0"));
  auto next = std::async(std::launch::async, [&] {
    return store_from_environment({1, 2, 1, 2}, in_seconds(60));
  });
  old.reset();
  const TcpStoreServer server("127.0.0.1", port);
  CHECK_FALSE(next.get()->failure());
}

TEST_CASE("a process that is new meets the failure of a job that is still starting") {
  const TcpStoreServer server("127.0.0.1", 0);
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(server.port())}});
  const auto first = connect_tcp_store("127.0.0.1", server.port(), in_seconds(20));
  first->join(0, "world", 3);
  first->post_failure("rank 0: no such file");
  const auto late = store_from_environment({1, 3, 1, 3}, in_seconds(20));
  CHECK(late->failure() == "rank 0: no such file");
}

TEST_CASE("a process that is new waits for the next job if all ranks of the failed one had met") {
  const TcpStoreServer server("127.0.0.1", 0);
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(server.port())}});
  const auto first = connect_tcp_store("127.0.0.1", server.port(), in_seconds(20));
  first->join(0, "world", 2);
  first->join(1, "world", 2);
  first->post_failure("rank 0: the disk is full");
  CHECK_THROWS_WITH(store_from_environment({1, 2, 1, 2}, in_seconds(0.3)),
                    ContainsSubstring("a job that has failed: rank 0: the disk is full"));
}

TEST_CASE("a file whose failed job lingers is replaced by the next job") {
  const bool has_met = GENERATE(false, true);
  const TemporaryFile file;
  const Environment environment({{"KOLO_STORE", "file:" + file.path()}});
  auto old = open_file_store(file.path(), 3, in_seconds(20));
  if (has_met) {  // this process need not have been a rank of it
    for (const int rank : {0, 1, 2}) old->join(rank, "world", 3);
    old->post_failure("rank 1 is gone");
  } else {
    store_from_environment({2, 3, 2, 3}, in_seconds(20))->post_failure("rank 1 is gone");
  }
  const auto next = store_from_environment({1, 2, 1, 2}, in_seconds(20));
  CHECK_FALSE(next->failure());
  next->set("key", "value");
  CHECK(old->failure() == "rank 1 is gone");
  old.reset();  // leaves the file of the next job alone
  const auto other = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  CHECK(other->get("key", in_seconds(20)) == "value");
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
