// Error messages for a transport that is not in this build.
#include "transports/base/disabled_transports.h"

#include <algorithm>
#include <array>

#include "test/support/catch.h"
#include "transports/registry.h"

using namespace kolo;
using Catch::Matchers::StartsWith;

namespace {

const std::array<std::string, 2> kNames = {"inproc", "tcp"};
constexpr std::array<DisabledTransport, 2> kLeftOut = {
    {{"pigeon", "pigeon.h was not found", "install libpigeon-dev, then configure and build again"},
     {"drum", "KOLO_WITHOUT names it", "take it out of KOLO_WITHOUT"}}};

}  // namespace

TEST_CASE(
    "the error for a disabled transport names the reason, the remedy and the available "
    "transports") {
  CHECK(refusal_of("pigeon", kNames, kLeftOut) ==
        "transport 'pigeon' is not in this build, as pigeon.h was not found: install "
        "libpigeon-dev, then configure and build again; this build has inproc, tcp (or auto, or "
        "two joined by +, as shm+tcp, or the path of a library, which has a slash: ./libx.so)");
  CHECK_THAT(refusal_of("drum", kNames, kLeftOut),
             StartsWith("transport 'drum' is not in this build, as KOLO_WITHOUT names it: take"));
}

TEST_CASE("an unknown transport is not reported as disabled") {
  CHECK_THAT(refusal_of("pigeons", kNames, kLeftOut),
             StartsWith("unknown transport 'pigeons': this build has inproc, tcp (or auto"));
}

TEST_CASE("disabled transports are not listed as transports, and each has a remedy") {
  const auto names = transport_names();
  for (const DisabledTransport& row : disabled_transports()) {
    INFO(row.name);
    CHECK(std::ranges::find(names, row.name) == names.end());
    CHECK_THAT(std::string(row.way_out), ContainsSubstring("configure and build again"));
    CHECK_THROWS_WITH(resolve_transport(row.name), ContainsSubstring(std::string(row.way_out)));
  }
}
