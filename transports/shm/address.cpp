#include "transports/shm/address.h"

#include <fmt/format.h>

#include "transports/base/address_text.h"
#include "transports/error.h"

namespace kolo::inline v0::shm {

std::string to_text(const EndpointAddress& a) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {:d} {}", a.version, a.segment_bytes, a.process,
                     a.ticket[0], a.ticket[1], a.host, a.socket.empty() ? "-" : a.socket,
                     a.trial.address, a.trial.value, a.has_barriers, a.reason);
}

EndpointAddress address_from_text(const std::string& text, int peer) {
  auto words = stream_of(text);
  EndpointAddress a;
  if (!(words >> a.version) || a.version != kLayoutVersion ||
      !(words >> a.segment_bytes >> a.process >> a.ticket[0] >> a.ticket[1] >> a.host >> a.socket >>
        a.trial.address >> a.trial.value >> a.has_barriers)) {
    throw Error(
        ErrorCode::kProtocol, peer,
        fmt::format("rank {} speaks a different version of shm than {}: run the same build of "
                    "kolo on every rank",
                    peer, kLayoutVersion));
  }
  if (a.socket == "-") a.socket.clear();
  std::getline(words >> std::ws, a.reason);
  return a;
}

}  // namespace kolo::inline v0::shm
