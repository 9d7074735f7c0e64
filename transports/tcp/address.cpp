#include "transports/tcp/address.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <sstream>

#include "transports/base/address_text.h"
#include "transports/error.h"
#include "transports/posix/host/addresses.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/socket.h"
#include "transports/store/all_gather.h"
#include "transports/tcp/host_selection.h"

namespace kolo::inline v0::tcp {

namespace {

// The selected ones of `hosts`, in their order. Those that are not among them, such as loopback
// addresses, come last.
std::vector<std::string> selected(const std::string& selection,
                                  const std::vector<std::string>& hosts) {
  const auto interfaces = posix::interface_addresses();
  std::vector<std::string> named = select_hosts(selection, interfaces);
  if (named.empty())
    throw Error(ErrorCode::kUnavailable, kNoPeer, no_selected(selection, interfaces));
  std::ranges::stable_sort(named, {}, [&hosts](const std::string& host) {
    return std::ranges::find(hosts, host) - hosts.begin();
  });
  if (named.size() > posix::kMostHostAddresses) named.resize(posix::kMostHostAddresses);
  return named;
}

// The addresses to publish, the best first. If this rank listens on one address only, publishes its
// number, as its name may resolve differently on other hosts. Ranks of this host need none of them.
std::vector<std::string> addresses_to_publish(const TcpSettings& settings,
                                              const posix::Address& bound) {
  if (!settings.advertised.empty()) return {settings.advertised};  // a list is one as a text, too
  if (!settings.host.empty()) return {bound.host()};
  std::vector<std::string> hosts =
      posix::addresses_for_peers(settings.rendezvous_host, bound.family() == AF_INET6);
  if (!settings.selection.empty()) hosts = selected(settings.selection, hosts);
  if (hosts.empty()) hosts.emplace_back("127.0.0.1");
  return hosts;
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

std::string EndpointAddress::address() const { return posix::host_and_port(hosts.front(), port); }

std::string to_text(const EndpointAddress& address) {
  return fmt::format("{}\n{} {} {} {} {} {}\n", address.identity, fmt::join(address.hosts, ","),
                     address.port, address.segment_bytes, address.lanes, to_text(address.token),
                     address.listens_on_all ? 1 : 0);
}

EndpointAddress address_from_text(const std::string& text, int rank) {
  auto stream = stream_of(text);
  EndpointAddress address;
  std::string token, hosts;
  std::getline(stream, address.identity);
  stream >> hosts >> address.port >> address.segment_bytes >> address.lanes >> token >>
      address.listens_on_all;
  for (std::istringstream list(hosts); std::getline(list, hosts, ',');) {
    if (!hosts.empty()) address.hosts.push_back(hosts);
  }
  const auto parsed = token_from_text(token);
  if (!stream || !parsed || address.hosts.empty()) {
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
  own.hosts = addresses_to_publish(settings, bound);
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

}  // namespace kolo::inline v0::tcp
