// A long message whose sender has gone before anybody asked for it: libfabric still has its
// announcement, and nothing to fetch it from.
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/ofi.h"
#include "transports/ofi/provider.h"

namespace kolo {

TEST_CASE("a long segment of a rank that has gone before it was asked for is a loss") {
  for (const std::string& provider : ofi::providers_meant("")) {
    if (!ofi::find_provider(provider).info) continue;
    INFO(provider);
    const auto store = make_local_store();
    OfiSettings settings;
    settings.provider = provider;
    const auto make = [&](int rank) {
      return make_ofi({rank, 2, store, Clock::now() + std::chrono::seconds(60), 0, 2}, settings);
    };
    std::unique_ptr<Transport> sender;
    std::thread other([&] { sender = make(1); });
    const auto receiver = make(0);
    other.join();
    std::vector<std::byte> data(sender->channel(0).capabilities().segment_bytes);
    REQUIRE(sender->channel(0).send(data));
    for (int i = 0; i < 100; ++i) receiver->progress();  // the announcement is here
    sender->quiesce();
    for (int i = 0; i < 1000; ++i) receiver->progress();  // and so is the end of its connection
    try {
      const auto deadline = Clock::now() + std::chrono::seconds(60);
      while (!receiver->channel(1).receive(data) && Clock::now() < deadline) receiver->progress();
      CHECK(Clock::now() < deadline);  // who keeps it meanwhile may have it
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kPeerLost);
      CHECK(error.peer() == 1);
    }
  }
}

}  // namespace kolo
