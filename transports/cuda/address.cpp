// Format, in lines: name and version; why; process; uuid; socket; token, segment_bytes, slots,
// device, ring, the handle in hex; a checksum over all of these. The checksum is needed because the
// driver does not validate a handle, and an address is used unchecked.
//
// The version also covers the shared words (shared_block.h) and the hello: ranks that read each
// other's addresses have the same layout of both.
#include "transports/cuda/address.h"

#include <fmt/format.h>
#include <algorithm>

#include "transports/base/address_text.h"
#include "transports/error.h"

namespace kolo::inline v0::cuda {

namespace {

constexpr const char* kForm = "kolo-cuda 2";

}  // namespace

std::string to_text(const EndpointAddress& address) {
  const auto& handle = address.handle.bytes;
  return with_checksum(fmt::format("{}\n{}\n{}\n{}\n{}\n{} {} {} {} {} {}\n", kForm, address.why,
                                   address.process, address.uuid, address.socket, address.token,
                                   address.segment_bytes, address.slots, address.device,
                                   address.ring, to_hex({handle.data(), handle.size()})));
}

EndpointAddress address_from_text(const std::string& text, int rank) {
  auto stream = stream_of(text);
  EndpointAddress address;
  std::string form;
  std::string handle;
  for (std::string* line : {&form, &address.why, &address.process, &address.uuid, &address.socket})
    std::getline(stream, *line);
  stream >> address.token >> address.segment_bytes >> address.slots >> address.device >>
      address.ring >> handle;
  const auto bytes = from_hex(handle);
  if (stream && bytes && bytes->size() == address.handle.bytes.size() && form == kForm) {
    std::ranges::copy(*bytes, address.handle.bytes.begin());
    if (to_text(address) == text) return address;
  }
  throw Error(
      ErrorCode::kProtocol, rank,
      fmt::format("rank {} published an unreadable endpoint address (cuda_ipc): run the same "
                  "build of kolo on every rank",
                  rank));
}

}  // namespace kolo::inline v0::cuda
