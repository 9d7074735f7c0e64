// Unknown clients at the listener of the guide's example transport while its ranks connect.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/store/forwarding_store.h"
#include "test/transports/support/listening_sockets.h"
#include "test/transports/support/unknown_clients.h"
#include "transports/registry.h"

namespace kolo::test {
namespace {

// As in unix_transport.c.
struct EndpointAddress {
  char name[sizeof(sockaddr_un::sun_path)];
  std::uint64_t secret;
};
struct Hello {
  std::uint64_t secret = 0;
  std::int32_t rank = 0;
  std::int32_t padding = 0;

  std::string text() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};

ListeningSocket listener_of(const EndpointAddress& address) {
  ListeningSocket listener;
  listener.address.ss_family = AF_UNIX;
  std::memcpy(reinterpret_cast<char*>(&listener.address) + offsetof(sockaddr_un, sun_path),
              address.name, sizeof address.name);
  listener.length = offsetof(sockaddr_un, sun_path) + 6;
  return listener;
}

bool is_hung_up_on(const posix::Descriptor& unknown_client) {
  pollfd watched{unknown_client.get(), POLLIN, 0};
  char byte = 0;
  return ::poll(&watched, 1, 60'000) == 1 &&
         ::recv(unknown_client.get(), &byte, 1, MSG_DONTWAIT) <= 0;
}

// Messages that no rank sends to the owner of this endpoint address.
std::vector<std::string> speeches_to(const EndpointAddress& address) {
  std::vector<std::string> speeches = unknown_client_messages();
  for (const std::int32_t rank : {-1, 0, 2, INT32_MIN, INT32_MAX})
    speeches.push_back(Hello{address.secret, rank}.text());
  speeches.push_back(Hello{address.secret + 1, 1}.text());
  const std::string right = Hello{address.secret, 1}.text();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, right.size() - 1})
    speeches.push_back(right.substr(0, bytes));
  return speeches;
}

// Sends all unknown clients to rank 0 before its address is returned to the other rank.
class Besieging final : public ForwardingStore {
 public:
  std::string get(std::string_view key, Deadline deadline) override {
    std::string value = ForwardingStore::get(key, deadline);
    if (key.ends_with("address/0")) besiege(value);
    return value;
  }

  int hung_up = 0;
  int unknown_clients = 0;

 private:
  void besiege(const std::string& value) {
    EndpointAddress address{};
    std::memcpy(&address, value.data(), std::min(sizeof address, value.size()));
    for (const std::string& speech : speeches_to(address)) {
      ++unknown_clients;
      hung_up += is_hung_up_on(speak_to(listener_of(address), speech)) ? 1 : 0;
    }
  }
};

}  // namespace

TEST_CASE("ranks of the guide's example drop unknown clients and connect all the same") {
  const auto store = std::make_shared<Besieging>();
  std::unique_ptr<Transport> ranks[2];
  const auto make = [&](int rank) {
    ranks[rank] = make_transport(KOLO_EXAMPLE,
                                 {rank, 2, store, Clock::now() + std::chrono::seconds(60), 0, 2});
  };
  std::thread other([&] { make(1); });
  make(0);
  other.join();
  CHECK(store->unknown_clients > 10);
  CHECK(store->hung_up == store->unknown_clients);
  const std::vector<std::byte> sent(5000, std::byte{7});
  std::vector<std::byte> got(sent.size());
  REQUIRE(ranks[1]->channel(0).send(sent));
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  bool has_come = false;
  while (!(has_come && ranks[1]->channel(0).is_drained()) && Clock::now() < deadline) {
    has_come = has_come || ranks[0]->channel(1).receive(got);
    for (const auto& rank : ranks) rank->progress();
  }
  CHECK(got == sent);
}

}  // namespace kolo::test
