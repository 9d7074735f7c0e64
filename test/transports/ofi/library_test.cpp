// Loading of libfabric.
#include <cstdlib>
#include <optional>
#include <string>

#include "test/support/catch.h"
#include "transports/ofi/library.h"

namespace kolo::ofi {

TEST_CASE("libfabric is loaded without a change of the environment") {
  const auto asked = [] {
    const char* const value = std::getenv("FI_OFI_RXM_MSG_RX_SIZE");
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  const auto before = asked();
  const std::string why_not = why_no_library();
  CHECK(asked() == before);
  if (!why_not.empty()) WARN("skipped: " << why_not);
}

}  // namespace kolo::ofi
