// Unknown clients at the sockets of ranks, including UCX's own, neither stop a rank nor change a
// result.
#include <cstdlib>

#include "test/support/catch.h"
#include "test/transports/support/unknown_clients.h"
#include "transports/settings.h"
#include "transports/ucx/transport.h"

using namespace kolo;
using namespace kolo::test;

TEST_CASE("unknown clients at all sockets of ucx ranks change no result, whatever they send") {
  for (const char* const ways : {"tcp", "posix,self"}) {
    INFO(ways);
    const char* const before = std::getenv("UCX_TLS");
    const std::string kept = before == nullptr ? "" : before;
    set_setting("UCX_TLS", ways);
    RanksWithUnknownClients ranks(
        [](const TransportRequest& request) { return make_ucx(request); });
    set_setting("UCX_TLS", kept);
    REQUIRE(ranks.listeners().size() >= 2);
    for (const std::string& speech : unknown_client_messages()) {
      INFO("they say " << speech.size() << " bytes");
      CHECK(ranks.withstands(speech));
    }
  }
}
