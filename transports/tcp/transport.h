// TCP transport over IPv4 or IPv6: one socket per pair of ranks, connected on the first use of
// their channel. So a job has only as many connections as its schedules need.
//
// Cost of a segment: one system call to send and about one to receive; each copies once between
// user memory and the kernel. send() and receive() use the caller's memory directly. A committed
// slot is sent at once, while it is in the cache. A view lies in a buffer of one segment that stays
// in the core's cache.
//
// The kernel sizes its socket buffers; KOLO_TCP_BUFFERS fixes them. KOLO_TCP_LANES makes several
// connections per pair, for networks where one connection is slower than the path.
//
// Congestion control is not needed inside a host. BBR, the default of some systems, paces even
// there and halves the throughput. So connections within a host use reno or cubic if the kernel has
// them, all others the system's default. KOLO_TCP_CONGESTION overrides both.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo::inline v0 {

struct TcpSettings {
  std::string host;        // address to listen on and to publish; empty: all of this host
  std::string selection;   // of the addresses to publish (host_selection.h); empty: all
  std::string advertised;  // published instead, separated by commas: an address outside of a NAT
  std::uint16_t port_low = 0;  // to listen on; 0: the kernel chooses
  std::uint16_t port_high = 0;
  std::string congestion;  // empty: as above; "system": the system's default
  int buffer_bytes = 0;    // of each socket, each way; 0: the kernel's, which grow as needed
  int lanes = 1;           // connections per pair; equal on all ranks
  std::chrono::milliseconds hello_timeout{5000};

  // Longest delay between the end of one connection from another host and the data of another. A
  // lost packet is sent again within about 200 ms and a round trip.
  std::chrono::milliseconds on_its_way{1000};

  std::size_t segment_bytes = 256 * 1024;
  std::size_t longest_segment_bytes = 0;  // for long fat networks; 0: segment_bytes
  std::string rendezvous_host;  // the address on the route to it is published first; may be empty
};

TcpSettings tcp_settings(const Settings& settings);

// Collective over the request's ranks: returns when all have published their addresses. Error
// kDeadline names the missing ranks.
std::unique_ptr<Transport> make_tcp(const TransportRequest& request, const TcpSettings& settings);

}  // namespace kolo::inline v0
