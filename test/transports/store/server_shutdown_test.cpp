// Ranks that connect late to a failed job, while its server shuts down.
#include <poll.h>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "test/transports/support/raw_connection.h"
#include "transports/error.h"
#include "transports/store/past_jobs.h"
#include "transports/store/wire.h"

using namespace kolo;
using namespace kolo::test;
using store_wire::Kind;

namespace {

// The failure that arrives at `store`, which may take a moment.
std::optional<std::string> heard_by(Store& store) {
  const auto deadline = in_seconds(20);
  while (!store.failure() && Clock::now() < deadline) std::this_thread::yield();
  return store.failure();
}

// Failed job of three ranks: one has died and one has not connected yet.
class FailedJob {
 public:
  FailedJob() {
    first_->join(0);
    auto second = connect_tcp_store("127.0.0.1", port(), in_seconds(20));
    second->join(1);
    second.reset();
    heard_by(*first_);
  }

  std::uint16_t port() const { return server_->port(); }
  std::string failure() const { return first_->failure().value_or("none"); }

  // Ends the server, as rank 0 does once it knows of the failure.
  void end() { server_.reset(); }

 private:
  std::unique_ptr<TcpStoreServer> server_ = std::make_unique<TcpStoreServer>("127.0.0.1", 0, 3);
  std::shared_ptr<Store> first_ = connect_tcp_store("127.0.0.1", port(), in_seconds(20));
};

// The first message of a kind in the bytes that a server has sent.
std::optional<store_wire::Message> find(std::string said, Kind kind) {
  while (auto message = store_wire::take(said)) {
    if (message->kind == kind) return message;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a client that has not sent hello when a failed job's server ends gets the failure") {
  FailedJob job;
  CHECK_THAT(job.failure(), ContainsSubstring("rank 1 (") && ContainsSubstring("is gone"));
  RawConnection late(job.port());
  job.end();
  const std::string heard = late.hear_all();
  const auto failed = find(heard, Kind::kFailed);
  REQUIRE(failed);
  CHECK(failed->value == job.failure());
  CHECK(find(heard, Kind::kGoodbye));
}

TEST_CASE("a client that sends hello while a failed job's server ends gets the failure") {
  FailedJob job;
  RawConnection late(job.port());
  std::thread ending([&] { job.end(); });
  late.say(store_wire::encode({Kind::kHello, 1, store_wire::kVersion, {}, "late"}));
  const std::string heard = late.hear_all();
  ending.join();
  const auto failed = find(heard, Kind::kFailed);
  REQUIRE(failed);
  CHECK(failed->value == job.failure());
}

TEST_CASE("a failed job's server ends at once after all ranks have connected") {
  FailedJob job;
  const auto third = connect_tcp_store("127.0.0.1", job.port(), in_seconds(20));
  CHECK(heard_by(*third) == job.failure());
  third->join(2);
  job.end();
  CHECK_THROWS_WITH(third->get("key", in_seconds(20)), job.failure());
}

TEST_CASE("a rank that gets a failure in place of a hello reports it, or waits for the next job") {
  const bool is_known = GENERATE(false, true);
  PastJobs past;
  if (is_known) past.add("the job");
  const auto listener = posix::listen_on("127.0.0.1", 0);
  std::thread server([&] {
    pollfd watched{listener.get(), POLLIN, 0};
    ::poll(&watched, 1, 20'000);
    RawConnection(posix::accept_from(listener))
        .say(store_wire::encode({Kind::kFailed, 0, 0, "the job", "rank 1 is gone"}) +
             store_wire::encode({Kind::kGoodbye, 0, 0, {}, {}}));
  });
  const auto port = posix::local_address(listener).port();
  std::string text;
  try {
    connect_tcp_store("127.0.0.1", port, in_seconds(is_known ? 0.3 : 20), kNoPeer, &past);
  } catch (const Error& error) {
    text = error.what();
  }
  server.join();
  if (is_known) {
    CHECK_THAT(text, ContainsSubstring("it still serves a job that has failed: rank 1 is gone"));
  } else {
    CHECK(text == "rank 1 is gone");
  }
}

TEST_CASE("a rank that connects after rank 0 has ended is told where a failed job says why") {
  auto server = std::make_unique<TcpStoreServer>("127.0.0.1", 0);
  const std::uint16_t port = server->port();
  server.reset();
  CHECK_THROWS_WITH(connect_tcp_store("127.0.0.1", port, in_seconds(0.1), 0),
                    ContainsSubstring("start rank 0, which serves it") &&
                        ContainsSubstring("see its last output"));
}

TEST_CASE(
    "a store that was shut down in good order accepts notes, answers nothing and reports no "
    "failure") {
  std::optional<TcpStoreServer> server(std::in_place, "127.0.0.1", 0);
  const auto store = connect_tcp_store("127.0.0.1", server->port(), in_seconds(20), 0);
  store->set("key", "value");
  server.reset();
  store->note("key", "another");
  const auto answer = store->ask("key");
  for (const auto end = in_seconds(20); !answer->has_come && Clock::now() < end;) store->failure();
  CHECK(answer->has_come);
  CHECK_FALSE(store->failure());
  store->note("key", "another");
  const auto second = store->ask("key");
  CHECK(second->has_come);
  CHECK_FALSE(second->value);
  CHECK_THROWS_WITH(store->set("key", "value"),
                    ContainsSubstring("rank 0, which served the store at 127.0.0.1:") &&
                        ContainsSubstring("has ended") &&
                        ContainsSubstring("keep rank 0 until all ranks are done"));
  CHECK_FALSE(store->failure());
  store->leave();
}
