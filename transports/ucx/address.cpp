// Format, in lines: name and version; host identity; liveness socket; token, segment_bytes,
// host_bytes and the address in hex; a checksum over all of these. The checksum is needed because
// UCX does not validate an address.
#include "transports/ucx/address.h"

#include <fmt/format.h>

#include "transports/base/address_text.h"
#include "transports/error.h"

namespace kolo::ucx {

namespace {

constexpr const char* kForm = "kolo-ucx 2";

}  // namespace

std::string to_text(const EndpointAddress& card) {
  return with_checksum(fmt::format("{}\n{}\n{}\n{} {} {} {}\n", kForm, card.identity, card.liveness,
                                   card.token, card.segment_bytes, card.host_bytes,
                                   to_hex(card.address)));
}

EndpointAddress address_from_text(const std::string& text, int rank) {
  auto stream = stream_of(text);
  EndpointAddress card;
  std::string form;
  std::string address;
  std::getline(stream, form);
  std::getline(stream, card.identity);
  std::getline(stream, card.liveness);
  stream >> card.token >> card.segment_bytes >> card.host_bytes >> address;
  const auto bytes = from_hex(address);
  if (stream && bytes && !bytes->empty() && form == kForm) {
    card.address = *bytes;
    if (to_text(card) == text) return card;
  }
  throw Error(ErrorCode::kProtocol, rank,
              fmt::format("rank {} published an unreadable ucx address: run the same build of "
                          "kolo on every rank",
                          rank));
}

}  // namespace kolo::ucx
