// Format, in lines: name and version; host identity; liveness socket; token, segment_bytes,
// host_bytes and the address in hex; a checksum over all of these. The checksum is needed because
// UCX does not validate an address.
#include "transports/ucx/address.h"

#include <fmt/format.h>

#include "transports/base/address_text.h"
#include "transports/error.h"

namespace kolo::inline v0::ucx {

namespace {

constexpr const char* kForm = "kolo-ucx 2";

}  // namespace

std::string to_text(const EndpointAddress& address) {
  return with_checksum(fmt::format("{}\n{}\n{}\n{} {} {} {}\n", kForm, address.identity,
                                   address.liveness, address.token, address.segment_bytes,
                                   address.host_bytes, to_hex(address.address)));
}

EndpointAddress address_from_text(const std::string& text, int rank) {
  auto stream = stream_of(text);
  EndpointAddress address;
  std::string form;
  std::string hex;
  std::getline(stream, form);
  std::getline(stream, address.identity);
  std::getline(stream, address.liveness);
  stream >> address.token >> address.segment_bytes >> address.host_bytes >> hex;
  const auto bytes = from_hex(hex);
  if (stream && bytes && !bytes->empty() && form == kForm) {
    address.address = *bytes;
    if (to_text(address) == text) return address;
  }
  throw Error(ErrorCode::kProtocol, rank,
              fmt::format("rank {} published an unreadable ucx address: run the same build of "
                          "kolo on every rank",
                          rank));
}

}  // namespace kolo::inline v0::ucx
