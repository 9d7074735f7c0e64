// Fuzzer of the endpoint address of ucx: any text, and addresses that were truncated or changed.
#include <cstdint>
#include <string>

#include "test/fuzz/input.h"
#include "transports/error.h"
#include "transports/ucx/address.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

bool is_same(const ucx::EndpointAddress& a, const ucx::EndpointAddress& b) {
  return a.identity == b.identity && a.liveness == b.liveness && a.address == b.address &&
         a.token == b.token && a.segment_bytes == b.segment_bytes && a.host_bytes == b.host_bytes;
}

void take_text(const std::string& text) {
  const ucx::EndpointAddress address = ucx::address_from_text(text, 1);
  require(ucx::to_text(address) == text, "an endpoint address survives writing and reading");
}

std::string line(Input& input) {
  const std::string taken(input.take(input.number<std::uint8_t>()));
  return taken.substr(0, taken.find('\n'));
}

void take_torn(Input& input) {
  ucx::EndpointAddress address{line(input),
                               line(input),
                               "",
                               input.number<std::uint32_t>(),
                               input.number<std::uint32_t>(),
                               input.number<std::uint32_t>()};
  address.address = "a" + std::string(input.take(input.number<std::uint8_t>()));
  const std::string text = ucx::to_text(address);
  require(is_same(ucx::address_from_text(text, 1), address), "an undamaged address is what it was");
  const auto place = input.number<std::uint16_t>();
  const char change = input.number<char>();
  take_text(torn(text, place, change));
  require(false, "a damaged address is refused");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  try {
    if (input.number<char>() == 't') {
      take_torn(input);
    } else {
      take_text(std::string(input.take_all()));
    }
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kProtocol, "what cannot be read is a protocol's error");
  }
  return 0;
}
