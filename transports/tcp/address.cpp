#include "transports/tcp/address.h"

#include <fmt/format.h>
#include <optional>

#include "transports/base/address_text.h"
#include "transports/error.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/socket.h"
#include "transports/store/all_gather.h"

namespace kolo::tcp {

namespace {

// Local address on the route to `host`: the source address of a datagram. Sends nothing.
std::optional<posix::Address> address_towards(const std::string& host) {
  std::string why;
  for (const auto& address : posix::resolve(host, 9, why)) {
    const posix::Descriptor socket(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.is_open() && ::connect(socket.get(), address.get(), address.length()) == 0) {
      return posix::local_address(socket);
    }
  }
  return std::nullopt;
}

// Chooses the address to publish. If this rank listens on one address only, publishes its number,
// as its name may resolve differently on other hosts. A loopback address is the last choice: ranks
// of this host do not need the published one, and other hosts cannot use a loopback address. (The
// machine's own name, or "localhost" as the store's host, resolves to one.)
std::string address_to_publish(const TcpSettings& settings, const posix::Address& bound) {
  if (!settings.host.empty()) return bound.host();
  // Any address behind the default route will do; this one is reserved for documentation.
  for (const std::string& host :
       {settings.rendezvous_host, std::string("192.0.2.1"), posix::host_name()}) {
    const auto address = host.empty() ? std::nullopt : address_towards(host);
    if (address && !address->is_loopback()) return address->host();
  }
  return "127.0.0.1";
}

void require_alike(const EndpointAddress& own, int rank, const EndpointAddress& theirs, int peer) {
  if (theirs.segment_bytes != own.segment_bytes) {
    throw Error(
        ErrorCode::kMismatch, peer,
        fmt::format(
            "rank {} has tcp segments of {} bytes, rank {} of {}: set KOLO_SEGMENT_BYTES alike",
            rank, own.segment_bytes, peer, theirs.segment_bytes));
  }
  if (theirs.lanes != own.lanes) {
    throw Error(ErrorCode::kMismatch, peer,
                fmt::format("rank {} has {} tcp lanes, rank {} has {}: set KOLO_TCP_LANES alike",
                            rank, own.lanes, peer, theirs.lanes));
  }
}

}  // namespace

std::string EndpointAddress::address() const { return posix::host_and_port(host, port); }

std::string to_text(const EndpointAddress& address) {
  return fmt::format("{}\n{} {} {} {} {} {}\n", address.identity, address.host, address.port,
                     address.segment_bytes, address.lanes, to_text(address.token),
                     address.listens_on_all ? 1 : 0);
}

EndpointAddress address_from_text(const std::string& text, int rank) {
  auto stream = stream_of(text);
  EndpointAddress address;
  std::string token;
  std::getline(stream, address.identity);
  stream >> address.host >> address.port >> address.segment_bytes >> address.lanes >> token >>
      address.listens_on_all;
  const auto parsed = token_from_text(token);
  if (!stream || !parsed) {
    throw Error(
        ErrorCode::kProtocol, rank,
        fmt::format(
            "rank {} published an unreadable tcp address: does it run a different version of kolo?",
            rank));
  }
  address.token = *parsed;
  return address;
}

std::vector<EndpointAddress> exchange_addresses(const TransportRequest& request,
                                                const TcpSettings& settings,
                                                const posix::Address& bound) {
  EndpointAddress own;
  own.identity = posix::host_identity();
  own.host = address_to_publish(settings, bound);
  own.port = bound.port();
  own.segment_bytes = settings.segment_bytes;
  own.lanes = settings.lanes;
  own.token = random_token();
  own.listens_on_all = settings.host.empty();
  const auto texts = exchange(*request.store, request.rank, request.size, "address", to_text(own),
                              request.deadline, "publish their tcp addresses");
  std::vector<EndpointAddress> addresses;
  for (int rank = 0; rank < request.size; ++rank) {
    addresses.push_back(address_from_text(texts[static_cast<std::size_t>(rank)], rank));
    require_alike(own, request.rank, addresses.back(), rank);
    addresses.back().is_on_this_host = addresses.back().identity == own.identity;
  }
  return addresses;
}

}  // namespace kolo::tcp
