// Text of an endpoint address: it survives writing and reading, and invalid text is rejected.
#include "transports/cuda/address.h"

#include <limits>

#include "test/support/catch.h"
#include "transports/base/address_text.h"
#include "transports/error.h"

using namespace kolo;
using cuda::EndpointAddress;

namespace {

EndpointAddress an_address() {
  EndpointAddress address;
  address.process = "host/boot/pid:[1] 7";
  address.uuid = "GPU-0123";
  address.socket = "0001f";
  address.token = std::numeric_limits<std::uint64_t>::max();
  address.segment_bytes = 4096;
  address.slots = 4;
  address.device = 3;
  address.ring = 0x7f0000000000;
  address.handle.bytes[1] = '\xff';
  address.handle.bytes[2] = '\n';
  return address;
}

bool is_refused(const std::string& text) {
  try {
    cuda::address_from_text(text, 5);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kProtocol && error.peer() == 5;
  }
  return false;
}

// An endpoint address with `part` replaced by `other`, and a correct checksum.
std::string with(const std::string& part, const std::string& other) {
  std::string text = cuda::to_text(an_address());
  text.resize(text.rfind('\n', text.size() - 2) + 1);
  REQUIRE(text.find(part) != std::string::npos);
  return with_checksum(text.replace(text.find(part), part.size(), other));
}

}  // namespace

TEST_CASE("an endpoint address survives writing and reading, whatever bytes the handle has") {
  const EndpointAddress read = cuda::address_from_text(cuda::to_text(an_address()), 0);
  CHECK(read.why.empty());
  CHECK(read.process == an_address().process);
  CHECK(read.uuid == an_address().uuid);
  CHECK(read.socket == an_address().socket);
  CHECK(read.token == an_address().token);
  CHECK(read.segment_bytes == 4096);
  CHECK(read.slots == 4);
  CHECK(read.device == 3);
  CHECK(read.ring == an_address().ring);
  CHECK(read.handle.bytes == an_address().handle.bytes);
}

TEST_CASE("an endpoint address that only gives the reason for its absence is read") {
  EndpointAddress address;
  address.why = "the CUDA driver finds no device: see nvidia-smi";
  CHECK(cuda::address_from_text(cuda::to_text(address), 0).why == address.why);
}

TEST_CASE("an endpoint address that is cut anywhere or has extra text is refused") {
  const std::string text = cuda::to_text(an_address());
  for (std::size_t length = 0; length < text.size(); ++length) {
    INFO(length);
    CHECK(is_refused(text.substr(0, length)));
  }
  CHECK(is_refused(text + "x"));
}

TEST_CASE("an endpoint address with one changed letter is refused") {
  const std::string text = cuda::to_text(an_address());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = other[i] == '7' ? '8' : '7';
    INFO(i);
    CHECK(is_refused(other));
  }
}

TEST_CASE(
    "an endpoint address of another version or shape is refused although its checksum is right") {
  CHECK_FALSE(is_refused(with("kolo-cuda 2", "kolo-cuda 2")));
  CHECK(is_refused(with("kolo-cuda 2", "kolo-cuda 1")));
  CHECK(is_refused(with("00ff0a", "00ff")));      // a handle that is too short
  CHECK(is_refused(with("00ff0a", "00ff0a00")));  // too long
  CHECK(is_refused(with("00ff0a", "00fg0a")));    // not hexadecimal
  CHECK(is_refused(with("00ff0a", "00FF0A")));
  CHECK(is_refused(with(" 4096 4 3 ", " 4096 x 3 ")));
  CHECK(is_refused(with(" 4096 4 3 ", " -1 4 3 ")));
  CHECK(is_refused(with(" 4096 4 3 ", " 4096 99999999999 3 ")));
  CHECK(is_refused(with(" 4096 4 3 ", " 4096 4 ")));
}
