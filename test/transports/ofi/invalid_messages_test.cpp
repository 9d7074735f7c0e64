// Invalid messages of a peer, and messages that arrive early.
#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "test/support/catch.h"
#include "test/transports/store/forwarding_store.h"
#include "transports/base/liveness.h"
#include "transports/error.h"
#include "transports/ofi/channel.h"
#include "transports/ofi/provider.h"
#include "transports/ofi/transport.h"

namespace kolo::test {

namespace {

bool has_provider() {
  if (!ofi::usable_providers().empty()) return true;
  WARN("skipped: libfabric has none of the providers that ofi knows");
  return false;
}

// Rank 0's channel to rank 1, which has rank 0's own address.
struct Played {
  Played() {
    endpoint.know({endpoint.name(), endpoint.name()});
    liveness.know({liveness.address(), liveness.address()});
    channel.emplace(endpoint, liveness, ofi::Pair{0, 1, 4096, 4096, ofi::kSlots, 5, 6, 4, 4});
  }

  // Destroy the endpoint first: its posted operations belong to the channel.
  std::optional<ofi::OfiChannel> channel;
  ofi::Endpoint endpoint{ofi::find_provider(ofi::provider_for("")).info, 256, false};
  PeerLiveness liveness{0, 2};
};

// Hides rank 1's connection from the thread that made this store, until `is_open` and then kOften
// more queries.
class Gated final : public ForwardingStore {
 public:
  std::optional<std::string> try_get(std::string_view key) override {
    const bool is_held = key == "connected/1" && std::this_thread::get_id() == held_;
    if (is_held && (!is_open || ++asked_ < kOften)) return std::nullopt;
    return ForwardingStore::try_get(key);
  }

  std::atomic<bool> is_open = false;

 private:
  static constexpr int kOften = 200;
  const std::thread::id held_ = std::this_thread::get_id();
  int asked_ = 0;
};

}  // namespace

TEST_CASE("an endpoint name of the wrong length is refused, and the error names its rank") {
  for (const std::string asked : {"tcp", "sockets"}) {
    auto info = ofi::find_provider(ofi::provider_for(asked)).info;
    if (!info) continue;
    INFO(asked);
    ofi::Endpoint endpoint(std::move(info), 256, false);
    const std::string own = endpoint.name();
    for (const std::string& other :
         {own.substr(0, 1), own.substr(0, own.size() - 1), own + "x", std::string()}) {
      INFO(other.size() << " bytes where " << own.size() << " are right");
      try {
        endpoint.know({own, other});
        FAIL("it was taken");
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kProtocol);
        CHECK(error.peer() == 1);
      }
    }
  }
}

TEST_CASE(
    "a peer that reports more received segments than were sent causes an error that names it") {
  if (!has_provider()) return;
  Played played;
  played.channel->hear({ofi::MessageKind::kCredit, 1, 5});
  try {
    static_cast<void>(played.channel->send({}, kPlain));
    FAIL("it was believed");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kProtocol);
    CHECK(error.peer() == 1);
    CHECK_THAT(error.what(), ContainsSubstring("5 segments") && ContainsSubstring("of 0"));
  }
}

// The peer waits for an answer to its end message; without one its sent data is in doubt.
TEST_CASE("a peer's end message is handled while this rank still waits for others") {
  if (!has_provider()) return;
  const auto store = std::make_shared<Gated>();
  const auto make = [&](int rank) {
    return make_ofi({rank, 2, store, Clock::now() + std::chrono::seconds(60), 0, 2}, {});
  };
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    auto transport = make(1);
    static_cast<void>(transport->channel(0).send({}));
    store->is_open = true;
    transport.reset();
    is_over = true;
  });
  const auto transport = make(0);
  const auto knows = [&] {
    return transport->channel(1).under_way().find("the peer ended after 1") != std::string::npos;
  };
  while (!knows() && !is_over) {
    transport->progress();
    std::this_thread::yield();
  }
  other.join();
  CHECK(knows());
}

}  // namespace kolo::test
