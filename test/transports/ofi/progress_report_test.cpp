// Progress report of a libfabric channel after a timeout.
#include <stdexcept>
#include <thread>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/ofi/provider.h"
#include "transports/ofi/transport.h"

namespace kolo {

namespace {

constexpr std::size_t kBytes = 5000;

TransportRequest request_of(int rank, const std::shared_ptr<Store>& store) {
  return {rank, 2, store, Clock::now() + std::chrono::seconds(60), 0, 2};
}

// Alternates between `is_done` and progress().
template <typename Condition>
void until(Transport& transport, Condition is_done) {
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (!is_done()) {
    if (Clock::now() > end) throw std::runtime_error("nothing has moved for a minute");
    transport.progress();
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("a channel reports the progress of its segments in both directions") {
  if (ofi::usable_providers().empty()) {
    WARN("skipped: libfabric has none of the providers that ofi knows");
    return;
  }
  const auto store = make_local_store();
  const std::vector<std::byte> data(kBytes, std::byte{7});
  std::thread other([&] {
    const auto transport = make_ofi(request_of(1, store), {});
    for (int i = 0; i < 3; ++i) {
      until(*transport, [&] { return transport->channel(0).send(data); });
    }
    until(*transport, [&] { return store->try_get("seen").has_value(); });
  });
  std::string before;
  std::string after;
  {
    const auto transport = make_ofi(request_of(0, store), {});
    Channel& channel = transport->channel(1);
    before = channel.under_way();
    std::vector<std::byte> got(kBytes);
    until(*transport, [&] { return channel.receive(got); });
    static_cast<void>(channel.send({}));
    after = channel.under_way();
    store->set("seen", "");
    other.join();
  }
  CHECK(before ==
        "0 segments sent, 0 posted, 0 completed, 0 taken by the peer, at most 32 in flight; 0 "
        "received, 0 receives posted, 0 of them completed; the peer knows of 0 received");
  CHECK_THAT(after, ContainsSubstring("1 segments sent, 1 posted, "));
  CHECK_THAT(after, ContainsSubstring("; 1 received, 0 receives posted, 0 of them completed; "));
}

}  // namespace kolo
