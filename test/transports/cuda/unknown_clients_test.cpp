// Unknown clients at the bootstrap listener of cuda_ipc ranks: whatever they send, and however many
// are silent, the ranks connect.
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/cuda/fake_peer.h"
#include "test/transports/cuda/fake_ranks.h"
#include "test/transports/store/forwarding_store.h"
#include "test/transports/support/unknown_clients.h"
#include "transports/posix/pending_connections.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr int kStay = static_cast<int>(posix::PendingConnections::kMostUnknownClients) + 2;
constexpr int kClients = 3 * kStay;

// Calls `visit` with rank 0's endpoint address after rank 1 has published its own and before it
// connects. Rank 0 waits at its listener meanwhile.
class VisitedStore final : public ForwardingStore {
 public:
  using Visit = std::function<void(const cuda::EndpointAddress& address)>;
  explicit VisitedStore(Visit visit) : visit_(std::move(visit)) {}

  void set(std::string_view key, std::string_view value) override {
    ForwardingStore::set(key, value);
    if (key != "address/1") return;
    try {
      visit_(cuda::address_from_text(get("address/0", Clock::now() + std::chrono::seconds(60)), 0));
    } catch (const std::exception& error) {
      post_failure(error.what());
      throw;
    }
  }

 private:
  const Visit visit_;
};

// Rethrows the exception of `visit`.
void meet_while(const VisitedStore::Visit& visit) {
  FakeMachine machine;
  auto ranks = make_fake_ranks(machine, 2, nullptr, std::make_shared<VisitedStore>(visit));
  CHECK(ranks[0].transport->channel(1).stream() != nullptr);
  close_together(ranks);
  CHECK(machine.left_over().empty());
  CHECK(machine.violations().empty());
}

std::string text_of(const cuda::Hello& hello) {
  return {reinterpret_cast<const char*>(&hello), sizeof hello};
}

// Hellos that are almost valid.
std::vector<std::string> false_hellos(const cuda::EndpointAddress& address) {
  const cuda::Hello right{cuda::Hello{}.magic, address.token, 1};
  std::vector<cuda::Hello> wrong(5, right);
  wrong[0].magic ^= 1;
  wrong[1].token ^= 1;
  wrong[2].rank = 0;
  wrong[3].rank = 2;
  wrong[4].rank = -1;
  std::vector<std::string> texts;
  for (const cuda::Hello& hello : wrong) texts.push_back(text_of(hello));
  texts.push_back(text_of(right).substr(0, sizeof right - 1));
  return texts;
}

}  // namespace

TEST_CASE("the bootstrap listener of cuda_ipc drops unknown clients, whatever they send") {
  meet_while([](const cuda::EndpointAddress& address) {
    std::vector<std::string> speeches = unknown_client_messages();
    for (std::string& each : false_hellos(address)) speeches.push_back(std::move(each));
    for (const std::string& speech : speeches) {
      for (const bool brings_something : {false, true}) {
        const posix::Descriptor client = come_to(address.socket);
        posix::send_message(client.get(), bytes_of(speech), brings_something ? client.get() : -1);
        until_hung_up(client);
      }
    }
  });
}

TEST_CASE("a client with a valid hello but without memory is dropped, and not taken for the rank") {
  meet_while([](const cuda::EndpointAddress& address) {
    const posix::Descriptor client = come_to(address.socket);
    posix::send_message(client.get(), bytes_of(text_of({cuda::Hello{}.magic, address.token, 1})));
    until_hung_up(client);
  });
}

TEST_CASE("silent clients do not keep cuda_ipc ranks from connecting, and are dropped at the end") {
  std::vector<posix::Descriptor> silent;
  meet_while(
      [&](const cuda::EndpointAddress& address) { silent = silent_clients(address.socket, 20); });
  for (const auto& each : silent) CHECK(is_hung_up(each));
}

TEST_CASE("the bootstrap listener of cuda_ipc drops the oldest of many silent clients") {
  meet_while([](const cuda::EndpointAddress& address) {
    const auto clients = silent_clients(address.socket, kClients);
    for (int i = 0; i + kStay < kClients; ++i) {
      if (!is_hung_up(clients[static_cast<std::size_t>(i)]))
        throw std::runtime_error("an old unknown client is still there");
    }
  });
}

TEST_CASE("a rank that ends before the cuda_ipc bootstrap is done is named") {
  FakeMachine machine;
  const auto store = make_local_store();
  {
    BootstrapRank rank(machine, store);
    { const FakePeer gone(store, rank.driver()); }
    CHECK_THROWS_WITH(rank.met(), ContainsSubstring("rank 0: rank 1 (cuda_ipc) is gone"));
  }
  CHECK(machine.left_over().empty());
}

TEST_CASE("a rank whose connection is closed or wrongly answered reconnects") {
  FakeMachine machine;
  const auto store = make_local_store();
  {
    BootstrapRank rank(machine, store);
    FakePeer peer(store, rank.driver());
    for (int i = 0; i < 10; ++i) {
      const posix::Descriptor call = peer.take_call();
      const auto [hello, has_memory] = FakePeer::hear(call);
      CHECK(hello.token == peer.own_token());
      CHECK(hello.rank == 0);
      CHECK(has_memory);
      if (i % 2 == 1) {
        FakePeer::say(call, peer.token_of_rank_0() + 1);
        until_hung_up(call);
      }
    }
    const posix::Descriptor call = peer.take_call();
    FakePeer::say(call, peer.token_of_rank_0());
    peer.come();
    peer.say_hello();
    CHECK(peer.answer() == peer.own_token());
    peer.say_mapped();
    const cuda::BootstrapResult& met = rank.met();
    CHECK(met.peers[1].called.is_open());
    CHECK(met.peers[1].accepted.is_open());
  }
  CHECK(machine.left_over().empty());
  CHECK(machine.violations().empty());
}
