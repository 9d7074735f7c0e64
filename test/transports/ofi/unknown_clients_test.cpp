// Unknown clients at the sockets of ranks, including libfabric's own, change no result. If they can
// stop a rank, it reports an error.
#include "test/transports/support/unknown_clients.h"
#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/ofi/provider.h"
#include "transports/ofi/transport.h"

namespace kolo::test {

namespace {

RanksWithUnknownClients::Make over(const std::string& provider) {
  return [provider](const TransportRequest& request) {
    OfiSettings settings;
    settings.provider = provider;
    settings.patience = std::chrono::milliseconds(500);
    return make_ofi(request, settings);
  };
}

}  // namespace

TEST_CASE("unknown clients at all sockets of ofi ranks change no result, whatever they send") {
  for (const std::string provider : {"shm", "tcp"}) {
    if (!ofi::find_provider(ofi::provider_for(provider)).info) continue;
    INFO(provider);
    RanksWithUnknownClients ranks(over(provider));
    REQUIRE(ranks.listeners().size() >= 4);  // four of them belong to liveness
    for (const std::string& speech : unknown_client_messages()) {
      INFO("they say " << speech.size() << " bytes");
      CHECK(ranks.withstands(speech));
    }
  }
}

// The provider's thread may end, or loop over invalid input: ../../transports/README.md.
TEST_CASE(
    "unknown clients at the sockets of the sockets provider change no result, or cause an error") {
  if (!ofi::find_provider("sockets").info) {
    WARN("skipped: libfabric has no provider sockets");
    return;
  }
  for (const std::string& speech : unknown_client_messages()) {
    INFO("they say " << speech.size() << " bytes");
    RanksWithUnknownClients ranks(over("sockets"));
    ranks.say_everywhere(speech);
    try {
      bool is_whole = ranks.exchange();
      ranks.leave();
      is_whole &= ranks.exchange();
      CHECK(is_whole);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kSystem);
      CHECK_THAT(error.what(),
                 ContainsSubstring("libfabric's provider sockets makes no progress") &&
                     ContainsSubstring("KOLO_OFI_PROVIDER"));
    }
  }
}

}  // namespace kolo::test
