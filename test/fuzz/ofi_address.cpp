// Fuzzer of the endpoint address of ofi, and of the numbers that come with every message.
#include <cstdint>
#include <string>

#include "test/fuzz/input.h"
#include "transports/error.h"
#include "transports/ofi/bootstrap.h"
#include "transports/ofi/tag.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

void take_endpoint_address(const std::string& text) {
  const ofi::EndpointAddress address = ofi::address_from_text(text, 1);
  const ofi::EndpointAddress again = ofi::address_from_text(ofi::to_text(address), 1);
  require(again.why_not == address.why_not, "why there is no endpoint is said again");
  require(again.name == address.name && again.token == address.token &&
              again.window == address.window && again.liveness.ticket == address.liveness.ticket,
          "an endpoint address survives writing and reading");
}

void take_word(Input& input) {
  const auto bits = input.number<std::uint64_t>();
  const auto known = input.number<std::uint64_t>() >> 1;
  const ofi::ImmediateData word = ofi::immediate_from_bits(bits);
  require(ofi::to_bits(word) == bits, "a word says the same again");
  const std::uint64_t count = ofi::whole_count(word.count, known);
  require(count >= known && count - known <= ofi::kCountMask / 2, "a count only grows");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  try {
    if (input.number<char>() == 'w') {
      take_word(input);
    } else {
      take_endpoint_address(std::string(input.take_all()));
    }
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kProtocol, "what cannot be read is a protocol's error");
  }
  return 0;
}
