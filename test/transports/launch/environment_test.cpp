// Rank, size and store of a process, read from the environment.
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "test/transports/support/environment.h"
#include "transports/error.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/socket.h"
#include "transports/settings.h"

using namespace kolo;
using namespace kolo::test;

TEST_CASE("a process without a launcher is a job of one rank") {
  const Environment environment({});
  const auto who = launch_environment();
  CHECK((who.rank == 0 && who.size == 1 && who.local_rank == 0 && who.local_size == 1));
  CHECK(store_from_environment(who, in_seconds(1)) != nullptr);
}

TEST_CASE("a launcher's environment sets the ranks and sizes") {
  const Environment environment(
      {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}});
  const auto who = launch_environment();
  CHECK((who.rank == 5 && who.size == 8 && who.local_rank == 1 && who.local_size == 4));
}

TEST_CASE("the environment may omit the number of ranks on the host") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment({{"RANK", "0"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "0"},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", std::to_string(port)}});
  const auto who = launch_environment();
  CHECK((who.rank == 0 && who.size == 8 && who.local_rank == 0 && who.local_size == 0));
  CHECK(store_from_environment(who, in_seconds(20)) != nullptr);
}

TEST_CASE("the error for an incomplete or impossible environment names the variable") {
  const auto refusal = [](std::map<std::string, std::string> variables) {
    const Environment environment(std::move(variables));
    return refusal_of([] { launch_environment(); });
  };
  CHECK_THAT(refusal({{"RANK", "0"}}), ContainsSubstring("RANK is set but WORLD_SIZE is not"));
  CHECK_THAT(refusal({{"WORLD_SIZE", "2"}}),
             ContainsSubstring("WORLD_SIZE is set but RANK is not"));
  CHECK_THAT(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
             ContainsSubstring("RANK=2 must be less than WORLD_SIZE=2"));
  CHECK_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "1"}}),
             ContainsSubstring("LOCAL_RANK is not"));
  CHECK_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}),
             ContainsSubstring("LOCAL_RANK=2 must be less than WORLD_SIZE=2"));
  CHECK_THAT(
      refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "1"}}),
      ContainsSubstring("LOCAL_RANK=1"));
}

TEST_CASE("the error for a job without a store explains how to set one") {
  const auto refusal = [](std::map<std::string, std::string> variables) {
    const Environment environment(std::move(variables));
    return refusal_of([] { store_from_environment({0, 2, 0, 2}, in_seconds(1)); });
  };
  CHECK_THAT(refusal({}), ContainsSubstring("kolo-run"));
  CHECK_THAT(refusal({{"MASTER_ADDR", "127.0.0.1"}}), ContainsSubstring("MASTER_PORT is not"));
  CHECK_THAT(refusal({{"KOLO_STORE", "http://x"}}),
             ContainsSubstring("neither tcp://HOST:PORT nor file:PATH"));
  CHECK_THAT(refusal({{"KOLO_STORE", "tcp://host"}}), ContainsSubstring("is not tcp://HOST:PORT"));
  CHECK_THAT(refusal({{"KOLO_STORE", "tcp://host:0"}}),
             ContainsSubstring("is not tcp://HOST:PORT"));
}

TEST_CASE("a store that is served elsewhere is opened by its address, over IPv4 and IPv6") {
  for (const std::string host : {"127.0.0.1", "::1"}) {
    const TcpStoreServer server(host, 0);
    const Environment environment(
        {{"KOLO_STORE", "tcp://" + posix::host_and_port(host, server.port())}});
    const auto store = store_from_environment({1, 2, 1, 2}, in_seconds(20));
    store->set("key", "value");
    CHECK(store->describe() == "the store at " + posix::host_and_port(host, server.port()));
  }
}

TEST_CASE("a store in a file is opened by its path") {
  const TemporaryFile file;
  const Environment environment({{"KOLO_STORE", "file:" + file.path()}});
  const auto a = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  const auto b = store_from_environment({1, 2, 1, 2}, in_seconds(20));
  a->set("key", "value");
  CHECK(b->get("key", in_seconds(20)) == "value");
}

TEST_CASE("rank 0 serves the store at MASTER_ADDR until its last other client has left") {
  // The port was free a moment ago: the test has to choose one, as a user would.
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  auto rank_0 = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  auto rank_1 = store_from_environment({1, 2, 1, 2}, in_seconds(20));
  rank_0->join(0);
  rank_1->join(1);
  rank_0->set("key", "value");
  CHECK(rank_1->get("key", in_seconds(20)) == "value");
  rank_1->leave();
  rank_0->leave();
  rank_0.reset();
  CHECK_FALSE(rank_1->failure());  // it has left in good order
}

TEST_CASE("a second request gets the store in use, with the same server and membership") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  auto first = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  auto again = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  auto other = store_from_environment({1, 2, 1, 2}, in_seconds(20));
  CHECK(first == again);
  CHECK(first != other);
  first->join(0);
  again->join(0);
  other->join(1);
  first->leave();  // one of two communicators has ended: this rank is still a member
  first.reset();
  again->set("key", "value");
  CHECK(other->get("key", in_seconds(20)) == "value");
  CHECK_FALSE(other->failure());
  other->leave();
  again->leave();
}

TEST_CASE("a rank may join again before rank 0 has left the store") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  auto rank_0 = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  auto rank_1 = store_from_environment({1, 2, 1, 2}, in_seconds(20));
  for (int round = 0; round < 3; ++round) {
    rank_0->join(0, "world", 2);
    rank_1->join(1, "world", 2);
    rank_1->leave();
    rank_1.reset();
    rank_1 = store_from_environment({1, 2, 1, 2}, in_seconds(20));
    rank_1->join(1, "world", 2);
    rank_0->leave();
    rank_0.reset();
    rank_0 = store_from_environment({0, 2, 0, 2}, in_seconds(20));
    const std::string key = "of round " + std::to_string(round);
    rank_0->set(key, "value");
    CHECK(rank_1->get(key, in_seconds(20)) == "value");
    rank_1->leave();
  }
  CHECK_FALSE(rank_0->failure());
}

TEST_CASE("rank 0 starts a new server at the same port after a failure or for another size") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  auto store = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  store->set("key", "of the first");
  CHECK(store->post_failure("the first job has failed") == "the first job has failed");
  store.reset();
  store = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  CHECK_FALSE(store->failure());
  CHECK_FALSE(store->try_get("key"));
  store->set("key", "of the second");
  store.reset();
  store = store_from_environment({0, 3, 0, 3}, in_seconds(20));
  CHECK_FALSE(store->try_get("key"));
}

TEST_CASE("a forked child of rank 0 exits without closing the store") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  store_from_environment({0, 2, 0, 2}, in_seconds(20)).reset();
  const pid_t child = ::fork();
  if (child == 0) std::exit(7);  // destroys static objects
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  const auto store = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  store->set("key", "value");
  CHECK(store->try_get("key") == "value");
}

TEST_CASE("the error for a port in use says so") {
  const TcpStoreServer first("127.0.0.1", 0);
  try {
    const TcpStoreServer second("127.0.0.1", first.port());
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    CHECK_THAT(error.what(), ContainsSubstring("port " + std::to_string(first.port())) &&
                                 ContainsSubstring("in use"));
  }
}

TEST_CASE("a second process with rank 0 gets an error that says so") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  const auto rank_0 = store_from_environment({0, 2, 0, 2}, in_seconds(20));
  rank_0->join(0, "world", 2);
  try {
    store_from_environment({0, 3, 0, 3}, in_seconds(20));  // another size: not the store in use
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    CHECK_THAT(error.what(), ContainsSubstring("rank 0: another process already serves a ") &&
                                 ContainsSubstring("two processes have RANK=0"));
  }
  CHECK_FALSE(rank_0->failure());  // it may belong to another job
  rank_0->leave();
}

TEST_CASE("the error of rank 0 says that another program has its port") {
  const auto listener = posix::listen_on("127.0.0.1", 0);
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"},
       {"MASTER_PORT", std::to_string(posix::local_address(listener).port())}});
  try {
    store_from_environment({0, 2, 0, 2}, in_seconds(20));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("another program has it"));
  }
}

TEST_CASE(
    "a rank 0 that cannot reach its own store is told to correct MASTER_ADDR, not to start rank "
    "0") {
  const auto port = posix::local_address(posix::listen_on("127.0.0.1", 0)).port();
  const Environment environment(
      {{"MASTER_ADDR", "no host is called so"}, {"MASTER_PORT", std::to_string(port)}});
  try {
    store_from_environment({0, 2, 0, 2}, in_seconds(0.2));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("rank 0 serves the store of the job") &&
                                 ContainsSubstring("correct MASTER_ADDR, to a name or an address "
                                                   "of this host, " +
                                                   posix::host_name()) &&
                                 !ContainsSubstring("start rank 0"));
  }
}

TEST_CASE(
    "the error for a store without a server names the address, the time waited and the variable") {
  const auto port = std::to_string(posix::local_address(posix::listen_on("127.0.0.1", 0)).port());
  const auto said = [](std::map<std::string, std::string> variables) {
    const Environment environment(std::move(variables));
    try {
      store_from_environment({1, 2, 1, 2}, in_seconds(0.2));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kDeadline);
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  const auto place = ContainsSubstring("s for the store at 127.0.0.1:" + port);
  CHECK_THAT(said({{"KOLO_STORE", "tcp://127.0.0.1:" + port}}),
             place && ContainsSubstring("correct KOLO_STORE") && !ContainsSubstring("MASTER_"));
  CHECK_THAT(said({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}}),
             place && ContainsSubstring("correct MASTER_ADDR and MASTER_PORT") &&
                 !ContainsSubstring("KOLO_STORE"));
}

TEST_CASE("a rank that finds another program at the store's port reports it") {
  const auto listener = posix::listen_on("127.0.0.1", 0);
  const auto port = posix::local_address(listener).port();
  const Environment environment(
      {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port)}});
  try {
    store_from_environment({1, 2, 1, 2}, in_seconds(0.2));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("rank 1: waited ") &&
                                 ContainsSubstring("rank 0, which serves it, hangs") &&
                                 ContainsSubstring("another program seems to own that port") &&
                                 ContainsSubstring("choose another MASTER_PORT"));
  }
}
