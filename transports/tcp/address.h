// What each rank says of itself in the store before anybody connects: where it listens, and what
// both ends of a connection must agree on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transports/posix/socket.h"
#include "transports/tcp/hello.h"
#include "transports/tcp/transport.h"

namespace kolo::tcp {

struct EndpointAddress {
  std::string identity;  // of its host: see posix/identity.h
  std::string host;
  std::uint16_t port = 0;
  std::size_t segment_bytes = 0;
  int lanes = 1;
  Token token{};  // rank 0's is the job's
  bool listens_on_all = true;
  bool is_on_this_host = false;  // of who reads it

  std::string address() const;  // "10.0.0.2:40133": for messages
};

// What is published, but for is_on_this_host.
std::string to_text(const EndpointAddress& card);

// Error kProtocol that names the rank where the text is no card.
EndpointAddress address_from_text(const std::string& text, int rank);

// Everybody's, by rank; this rank listens at `bound` already. Error kDeadline names the ranks that
// did not come, kMismatch the first whose settings differ.
std::vector<EndpointAddress> exchange_addresses(const TransportRequest& request,
                                                const TcpSettings& settings,
                                                const posix::Address& bound);

}  // namespace kolo::tcp
