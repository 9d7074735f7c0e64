// Addresses by which other hosts may reach this one.
#pragma once

#include <string>
#include <vector>

namespace kolo::inline v0::posix {

inline constexpr std::size_t kMostHostAddresses = 8;

// An address of an interface that is up, without IPv6 link-local ones, which need the interface's
// name elsewhere.
struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string host;       // "10.9.0.1"
  bool is_loopback = false;
};

// Addresses for peers first, in the order below; then loopback addresses.
std::vector<InterfaceAddress> interface_addresses();

// Address at which processes of this host reach each other: 127.0.0.1, or ::1 where the loopback
// interface has no IPv4 address.
std::string loopback_host();

// Numeric addresses of the interfaces that are up, the best first, at most kMostHostAddresses:
//
//   1. the local address on the route to `rendezvous_host`, by which the other ranks came
//   2. the local address on the default route
//   3. the other ones, IPv4 before IPv6
//   4. bridges of containers and virtual machines, and IPv4 link-local addresses
//
// Without loopback addresses, which mean another host elsewhere, and without IPv6 link-local ones,
// which need the interface's name there. Empty if there are no others. `rendezvous_host`: a name or
// an address, or empty. `has_v6`: list IPv6 addresses, too.
std::vector<std::string> addresses_for_peers(const std::string& rendezvous_host, bool has_v6);

}  // namespace kolo::inline v0::posix
