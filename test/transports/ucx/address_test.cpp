// Text of an endpoint address: it survives writing and reading, and invalid text is rejected.
#include "transports/ucx/address.h"

#include "test/support/catch.h"
#include "transports/error.h"

using namespace kolo;
using ucx::EndpointAddress;

namespace {

EndpointAddress an_address() {
  return {"host/boot/net:[1]", "0001f", std::string("\0\xff\n addr", 8), 42, 4096, 512};
}

bool is_refused(const std::string& text) {
  try {
    ucx::address_from_text(text, 5);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kProtocol && error.peer() == 5;
  }
  return false;
}

}  // namespace

TEST_CASE("an endpoint address survives writing and reading, whatever bytes it has") {
  const EndpointAddress read = ucx::address_from_text(ucx::to_text(an_address()), 0);
  CHECK(read.identity == an_address().identity);
  CHECK(read.liveness == an_address().liveness);
  CHECK(read.address == an_address().address);
  CHECK(read.token == 42);
  CHECK(read.segment_bytes == 4096);
  CHECK(read.host_bytes == 512);
}

TEST_CASE("an endpoint address that is cut anywhere is refused") {
  const std::string text = ucx::to_text(an_address());
  for (std::size_t length = 0; length < text.size(); ++length) {
    INFO(length);
    CHECK(is_refused(text.substr(0, length)));
  }
  CHECK(is_refused(text + "x"));
}

TEST_CASE("an endpoint address with one changed letter is refused") {
  const std::string text = ucx::to_text(an_address());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = other[i] == '7' ? '8' : '7';
    INFO(i);
    CHECK(is_refused(other));
  }
}
