// A provider that libfabric lists but cannot open. If the user did not choose it, the next one is
// tried. Otherwise all ranks report the failed rank, the reason and a remedy.
#include "test/transports/ofi/failing_libfabric.h"

#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/ofi/provider.h"
#include "transports/ofi/transport.h"

namespace kolo::test {

namespace {

constexpr Fails kSteps[] = {Fails::kFabric, Fails::kDomain, Fails::kEndpoint, Fails::kNaming};
constexpr const char* kSays[] = {"opening its fabric", "opening its domain", "opening an endpoint",
                                 "naming its endpoint"};

// Two ranks; the second one fails on demand.
struct Tried {
  // Closes both at once: a rank that ends waits for the other one.
  void end() {
    std::thread other([this] { rank[1].reset(); });
    rank[0].reset();
    other.join();
  }

  std::unique_ptr<Transport> rank[2];
  std::string why_not[2];
};

template <typename Tell>
Tried try_to_join(const std::string& provider, const Tell& tell) {
  Tried tried;
  const auto store = make_local_store();
  OfiSettings settings;
  settings.provider = provider;
  const auto make = [&](std::size_t rank) {
    try {
      tried.rank[rank] = make_ofi(
          {static_cast<int>(rank), 2, store, Clock::now() + std::chrono::seconds(60), 0, 2},
          settings);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUnavailable);
      CHECK(error.peer() == 1);
      tried.why_not[rank] = error.what();
    }
  };
  std::thread other([&] {
    tell();
    make(1);
    let_all_fail(Fails::kNever);
  });
  make(0);
  other.join();
  return tried;
}

// Moves a segment one way. Its memory must live until the channel is drained, even if the peer has
// all of it: a thread of libfabric reads it.
bool moves(Transport& from, Transport& to) {
  const std::vector<std::byte> sent(5000, std::byte{7});
  std::vector<std::byte> got(sent.size());
  Channel& out = from.channel(to.rank());
  Channel& in = to.channel(from.rank());
  bool is_sent = false;
  bool is_received = false;
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (Clock::now() < deadline) {
    is_sent = is_sent || out.send(sent);
    is_received = is_received || in.receive(got);
    if (is_received && out.is_drained()) return got == sent;
    from.progress();
    to.progress();
    std::this_thread::yield();
  }
  return false;
}

// Providers that ranks choose by default; with fewer than two there is no choice.
std::vector<std::string> unasked() {
  std::vector<std::string> names;
  for (const auto& name : ofi::providers_meant("")) {
    if (ofi::find_provider(name).info) names.push_back(name);
  }
  return names;
}

}  // namespace

TEST_CASE("all ranks take the next provider if a default one does not open") {
  const auto names = unasked();
  if (names.size() < 2) {
    WARN("skipped: libfabric has fewer than two providers to choose from");
    return;
  }
  for (const Fails step : kSteps) {
    Tried tried = try_to_join("", [&] { let_fail(names[0], step); });
    REQUIRE(tried.rank[0]);
    REQUIRE(tried.rank[1]);
    CHECK(tried.rank[0]->carrier() == names[1]);
    CHECK(tried.rank[1]->carrier() == names[1]);
    CHECK(moves(*tried.rank[0], *tried.rank[1]));
    CHECK(moves(*tried.rank[1], *tried.rank[0]));
    tried.end();
  }
}

TEST_CASE("all ranks report a chosen provider that one rank cannot open, and a remedy") {
  for (const std::string asked : {"tcp", "sockets", "shm"}) {
    const std::string provider = ofi::provider_for(asked);
    if (!ofi::find_provider(provider).info) continue;
    for (const std::size_t i : {0u, 1u, 2u, 3u}) {
      INFO(provider << ", " << kSays[i]);
      const Tried tried = try_to_join(asked, [&] { let_fail(provider, kSteps[i]); });
      CHECK_THAT(tried.why_not[0], ContainsSubstring("rank 0: rank 1 has no endpoint (ofi): "));
      CHECK_THAT(tried.why_not[1], ContainsSubstring("rank 1 has no endpoint (ofi): "));
      for (const std::string& text : tried.why_not) {
        CHECK_THAT(text, ContainsSubstring("libfabric's provider " + provider + " fails in " +
                                           kSays[i] + ": ") &&
                             ContainsSubstring("KOLO_OFI_PROVIDER=") &&
                             ContainsSubstring("FI_PROVIDER"));
      }
    }
  }
}

TEST_CASE("the error lists every tried provider with its reason if none opens") {
  const auto names = unasked();
  if (names.empty()) {
    WARN("skipped: libfabric has none of the providers that ofi takes unasked");
    return;
  }
  const Tried tried = try_to_join("", [] { let_all_fail(Fails::kDomain); });
  for (const std::string& text : tried.why_not) {
    for (const std::string& name : names)
      CHECK_THAT(text, ContainsSubstring("rank 1 has no endpoint (ofi): libfabric's provider " +
                                         name + " fails in opening its domain: "));
  }
}

}  // namespace kolo::test
