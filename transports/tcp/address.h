// Endpoint address of a rank, exchanged through the store before any connection: where the rank
// listens, and the settings that both ends of a connection must share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transports/posix/socket.h"
#include "transports/tcp/hello.h"
#include "transports/tcp/transport.h"

namespace kolo::inline v0::tcp {

struct EndpointAddress {
  std::string identity;            // of its host: see posix/host/identity.h
  std::vector<std::string> hosts;  // numeric addresses, the best first; at least one
  std::uint16_t port = 0;
  std::size_t segment_bytes = 0;
  int lanes = 1;
  Token token{};  // rank 0's token is the job's
  bool listens_on_all = true;
  bool is_on_this_host = false;  // the reading rank's host; not published

  std::string address() const;  // of the best: "10.0.0.2:40133", for messages
};

// Text for the store, without is_on_this_host.
std::string to_text(const EndpointAddress& address);

// Error kProtocol with the rank if the text is not an endpoint address.
EndpointAddress address_from_text(const std::string& text, int rank);

// Addresses of all ranks, by rank. Requires that this rank already listens at `bound`. Error
// kDeadline names the missing ranks, kMismatch the first rank with other settings.
std::vector<EndpointAddress> exchange_addresses(const TransportRequest& request,
                                                const TcpSettings& settings,
                                                const posix::Address& bound);

}  // namespace kolo::inline v0::tcp
