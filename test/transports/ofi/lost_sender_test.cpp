// A long message whose sender has gone before the receiver asked for it: libfabric still has its
// announcement, but no source for the data.
#include <array>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/support/sanitizers.h"
#include "transports/error.h"
#include "transports/ofi/provider.h"
#include "transports/ofi/transport.h"

namespace kolo {

namespace {

// Two ranks over `provider`. Rank 1 has sent `short_ones` short segments and one of the maximal
// length, and rank 0 has its announcement.
struct Announced {
  explicit Announced(const std::string& provider, int short_ones = 0) {
    const auto store = make_local_store();
    OfiSettings settings;
    settings.provider = provider;
    const auto make = [&](int rank) {
      return make_ofi({rank, 2, store, Clock::now() + std::chrono::seconds(60), 0, 2}, settings);
    };
    std::thread other([&] { sender = make(1); });
    receiver = make(0);
    other.join();
    data.resize(sender->channel(0).capabilities().segment_bytes);
    for (int i = 0; i < short_ones; ++i) REQUIRE(sender->channel(0).send(brief));
    REQUIRE(sender->channel(0).send(data));
    for (int i = 0; i < 100; ++i) receiver->progress();
  }

  std::array<std::byte, 8> brief{};
  std::vector<std::byte> data;
  std::unique_ptr<Transport> sender;
  std::unique_ptr<Transport> receiver;
};

// The thread sanitizer reports that libfabric's sockets provider closes a connection of a lost peer
// while its own thread reads from it.
std::vector<std::string> usable_providers() {
  std::vector<std::string> usable = ofi::providers_meant("");
  if (test::kIsThreadSanitized) std::erase(usable, "sockets");
  std::erase_if(usable, [](const std::string& name) { return !ofi::find_provider(name).info; });
  return usable;
}

// `call` may fail, but only with the loss of rank 1.
template <typename Call>
void expect_loss_at_most(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kPeerLost);
    CHECK(error.peer() == 1);
  }
}

}  // namespace

TEST_CASE("a long segment is lost if its sender ends before the receiver asks for it") {
  for (const std::string& provider : usable_providers()) {
    INFO(provider);
    Announced ranks(provider);
    ranks.sender->quiesce();
    for (int i = 0; i < 1000; ++i) ranks.receiver->progress();  // handles the end of the connection
    expect_loss_at_most([&] {
      Channel& channel = ranks.receiver->channel(1);
      const auto deadline = Clock::now() + std::chrono::seconds(60);
      while (!channel.receive(ranks.data) && Clock::now() < deadline) ranks.receiver->progress();
      CHECK(Clock::now() < deadline);  // a provider that keeps the data may deliver it
    });
  }
}

TEST_CASE("a rank that receives short segments does not wait for a long one of a lost rank") {
  for (const std::string& provider : usable_providers()) {
    INFO(provider);
    Announced ranks(provider, 2);
    ranks.sender->quiesce();
    Channel& channel = ranks.receiver->channel(1);
    expect_loss_at_most([&] {
      for (int taken = 0; taken < 2;) {
        if (channel.receive(ranks.brief)) ++taken;
        if (taken == 1) channel.is_drained();  // which handles the end of the connection
      }
    });
  }
}

TEST_CASE("is_drained() does not wait for a long segment of a lost rank") {
  for (const std::string& provider : usable_providers()) {
    INFO(provider);
    std::vector<std::byte> unread;  // outlives the ranks: libfabric may send it until they end
    Announced ranks(provider);
    Channel& channel = ranks.receiver->channel(1);
    unread.resize(ranks.data.size());
    REQUIRE(channel.send(unread));
    ranks.sender->quiesce();
    expect_loss_at_most([&] {
      for (int i = 0; i < 10'000 && !channel.is_drained(); ++i) std::this_thread::yield();
    });
  }
}

}  // namespace kolo
