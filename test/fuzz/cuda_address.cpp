// Fuzzer of the endpoint address of cuda_ipc: any text, any text with a right checksum, and
// addresses that were truncated or changed.
#include <algorithm>
#include <cstdint>
#include <string>

#include "test/fuzz/input.h"
#include "transports/base/address_text.h"
#include "transports/cuda/address.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

bool is_same(const cuda::EndpointAddress& a, const cuda::EndpointAddress& b) {
  return a.why == b.why && a.process == b.process && a.uuid == b.uuid && a.socket == b.socket &&
         a.token == b.token && a.segment_bytes == b.segment_bytes && a.slots == b.slots &&
         a.device == b.device && a.ring == b.ring && a.handle.bytes == b.handle.bytes;
}

void take_text(const std::string& text) {
  const cuda::EndpointAddress address = cuda::address_from_text(text, 1);
  require(cuda::to_text(address) == text, "an endpoint address survives writing and reading");
}

std::string line(Input& input) {
  const std::string taken = input.short_text();
  return taken.substr(0, taken.find('\n'));
}

cuda::EndpointAddress address_of(Input& input) {
  cuda::EndpointAddress address;
  for (std::string* words : {&address.why, &address.process, &address.uuid, &address.socket})
    *words = line(input);
  address.token = input.number<std::uint64_t>();
  address.segment_bytes = input.number<std::uint64_t>();
  address.slots = input.number<std::int32_t>();
  address.device = input.number<std::int32_t>();
  address.ring = input.number<std::uint64_t>();
  std::ranges::copy(input.take(address.handle.bytes.size()), address.handle.bytes.begin());
  return address;
}

void take_torn(Input& input) {
  const auto place = input.number<std::uint16_t>();
  const char change = input.number<char>();
  const cuda::EndpointAddress address = address_of(input);
  const std::string text = cuda::to_text(address);
  require(is_same(cuda::address_from_text(text, 1), address),
          "an undamaged address is what it was");
  take_text(torn(text, place, change));
  require(false, "a damaged address is refused");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  try {
    const char kind = input.number<char>();
    if (kind == 't') {
      take_torn(input);
    } else if (kind == 's') {
      take_text(with_checksum(std::string(input.take_all())));
    } else {
      take_text(std::string(input.take_all()));
    }
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kProtocol, "what cannot be read is a protocol's error");
    require(error.peer() == 1, "the error names the address's rank");
  }
  return 0;
}
