// The ranks that join a TCP store's server.
#include <map>
#include <string>

#include "test/support/catch.h"
#include "transports/store/service.h"
#include "transports/store/wire.h"

using namespace kolo;
using store_wire::Kind;

namespace {

// A server and its clients, without sockets.
class Served {
 public:
  void greet(std::uint64_t client, const std::string& who) {
    service_.add(client);
    tell(client, {Kind::kHello, 1, store_wire::kVersion, {}, who});
  }
  void join(std::uint64_t client, int rank, const std::string& communicator, int size = 0) {
    tell(client, {Kind::kJoin, 0, rank, communicator, std::to_string(size)});
  }
  void leave(std::uint64_t client) { tell(client, {Kind::kLeave, 0, 0, {}, {}}); }
  void end(std::uint64_t client) { service_.remove(client, "closed without a goodbye"); }

  // The failure that was sent to a client; empty if none.
  std::string failure(std::uint64_t client) { return failures_[client]; }

  // The refusal that was sent to a client; empty if none.
  std::string refusal(std::uint64_t client) { return refusals_[client]; }

 private:
  void tell(std::uint64_t client, const store_wire::Message& message) {
    REQUIRE(service_.hear(client, store_wire::encode(message)) == nullptr);
  }

  std::map<std::uint64_t, std::string> failures_;
  std::map<std::uint64_t, std::string> refusals_;
  StoreService service_{[this](std::uint64_t client, const store_wire::Message& message) {
    if (message.kind == Kind::kFailed) failures_[client] = message.value;
    if (message.kind == Kind::kNothing) refusals_[client] = message.value;
  }};
};

}  // namespace

TEST_CASE("both of two processes with one rank get an error that names them") {
  Served served;
  served.greet(1, "node1, pid 7");
  served.greet(2, "node2, pid 9");
  served.join(1, 3, "world");
  CHECK(served.failure(1).empty());
  served.join(2, 3, "world");
  CHECK(served.failure(2) ==
        "rank 3 is taken twice, by node1, pid 7 and by node2, pid 9: give each process its own "
        "RANK, and each job its own store");
  CHECK(served.failure(1) == served.failure(2));
}

TEST_CASE("a newcomer with a rank of a job whose ranks have met is refused alone") {
  Served served;
  served.greet(1, "node1, pid 7");
  served.greet(2, "node1, pid 8");
  served.greet(3, "node1, pid 9");
  served.join(1, 0, "world", 2);
  served.join(2, 1, "world", 2);
  served.join(3, 1, "world", 2);
  CHECK(served.refusal(3) ==
        "rank 1 (node1, pid 9) is refused: all 2 ranks of this job have met, and its rank 1 is "
        "node1, pid 8: a program that a rank starts inherits RANK: unset it there; another job "
        "needs another MASTER_PORT, or another store in KOLO_STORE");
  served.join(3, 2, "world", 4);
  CHECK_THAT(served.refusal(3), Catch::Matchers::StartsWith(
                                    "rank 2 of 4 (node1, pid 9) is refused: this store serves a "
                                    "job of 2 ranks, all of which have met: "));
  served.end(3);
  CHECK(served.failure(1).empty());
  served.leave(2);
  served.greet(4, "node1, pid 10");
  served.join(4, 1, "world", 2);  // of the next job, while rank 0 of this one still leaves
  CHECK(served.refusal(4).empty());
  CHECK(served.failure(1).empty());
}

TEST_CASE("a rank number is free again once its process has left") {
  Served served;
  served.greet(1, "node1, pid 7");
  served.join(1, 3, "world");
  served.leave(1);
  served.greet(2, "node1, pid 8");
  served.join(2, 3, "world");
  served.end(1);
  CHECK(served.failure(2).empty());
}

TEST_CASE(
    "a process may join a rank twice, and two processes may have one rank in two communicators") {
  Served served;
  for (const std::uint64_t client : {1, 2}) served.greet(client, "node1, pid 7");
  for (const std::uint64_t client : {3, 4, 5}) served.greet(client, "node1, pid 8");
  served.join(1, 0, "world");
  served.join(1, 0, "world");
  served.join(2, 0, "world");
  served.join(3, 1, "world");
  served.join(3, 0, "half");
  served.join(4, 0, "");
  served.join(5, 0, "");
  CHECK(served.failure(1).empty());
}
