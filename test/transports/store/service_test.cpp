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
  void join(std::uint64_t client, int rank, const std::string& communicator) {
    tell(client, {Kind::kJoin, 0, rank, communicator, {}});
  }
  void leave(std::uint64_t client) { tell(client, {Kind::kLeave, 0, 0, {}, {}}); }
  void end(std::uint64_t client) { service_.remove(client, "closed without a goodbye"); }

  // The failure that was sent to a client; empty if none.
  std::string failure(std::uint64_t client) { return failures_[client]; }

 private:
  void tell(std::uint64_t client, const store_wire::Message& message) {
    REQUIRE(service_.hear(client, store_wire::encode(message)) == nullptr);
  }

  std::map<std::uint64_t, std::string> failures_;
  StoreService service_{[this](std::uint64_t client, const store_wire::Message& message) {
    if (message.kind == Kind::kFailed) failures_[client] = message.value;
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
