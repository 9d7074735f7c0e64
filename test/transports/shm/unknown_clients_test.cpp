// Many silent unknown clients at an shm listener: they cost little, and the ranks still connect.
#include <memory>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/shm/ranks.h"
#include "test/transports/support/listening_sockets.h"
#include "test/transports/support/unix_clients.h"
#include "transports/posix/pending_connections.h"
#include "transports/shm/address.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr int kStay = static_cast<int>(posix::PendingConnections::kMostUnknownClients) + 2;
constexpr int kClients = 3 * kStay;

std::string listener_of_rank_1(Store& store) {
  return shm::address_from_text(store.get("address/1", soon()), 1).socket;
}

}  // namespace

TEST_CASE("an shm listener drops the oldest of many silent clients, and the ranks still connect") {
  const auto store = make_local_store();
  const auto ranks = make_ranks(2, store);
  const std::string listener = listener_of_rank_1(*store);
  const auto before = open_descriptors().size();
  const auto clients = silent_clients(listener, kClients, [&] { ranks[1]->progress(); });
  for (int i = 0; i + kStay < kClients; ++i)
    CHECK(is_hung_up(clients[static_cast<std::size_t>(i)]));
  CHECK(open_descriptors().size() <= before + kClients + kStay);
  send(*ranks[0], 1, 5);
  CHECK(receive(*ranks[1], 0) == 5);
  send(*ranks[1], 0, 6);
  CHECK(receive(*ranks[0], 1) == 6);
}

TEST_CASE("an shm rank connects behind clients that fill the queue of its peer's listener") {
  const auto store = make_local_store();
  const auto ranks = make_ranks(2, store);
  const std::string listener = listener_of_rank_1(*store);
  std::vector<posix::Descriptor> clients;
  while (auto one = posix::connect_unix(listener)) clients.push_back(std::move(*one));
  CHECK(clients.size() > 2);
  send(*ranks[0], 1, 5);
  std::uint64_t value = 0;
  wait_until(
      *ranks[1],
      [&] {
        ranks[0]->progress();  // connects once there is room
        return ranks[1]->channel(0).receive(std::as_writable_bytes(std::span(&value, 1)));
      },
      "a segment");
  CHECK(value == 5);
}
