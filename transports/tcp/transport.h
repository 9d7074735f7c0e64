// Ranks joined by TCP connections, over IPv4 or IPv6: one socket per pair of ranks, made when one
// of the two first uses the channel. So a job has as many connections as its schedules need.
//
// What a segment costs: one system call to send and about one to receive, each copying once between
// user memory and the kernel. send() and receive() work on the caller's memory directly; a
// committed slot leaves at once, while it is hot; a view lies in a buffer of one segment that stays
// in the core's cache.
//
// What each socket takes beyond what it soon sends is the kernel's affair: KOLO_TCP_BUFFERS fixes
// its buffers. Several connections of a pair, KOLO_TCP_LANES, are for networks where one is slower
// than the way.
//
// Congestion control: none is needed inside one host, and BBR, the default of some systems, paces
// even there, which halves the throughput. So connections within a host use reno or cubic where the
// kernel has them, all others the system's choice; KOLO_TCP_CONGESTION overrides both.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo {

struct TcpSettings {
  std::string host;  // to listen on and to publish; empty: all addresses, published is the one that
                     // routes to the store
  std::uint16_t port_low = 0;  // to listen on; 0: the kernel chooses
  std::uint16_t port_high = 0;
  std::string congestion;  // empty: as above; "system": the system's
  int buffer_bytes = 0;    // of each socket, each way; 0: the kernel's, which grow as needed
  int lanes = 1;           // connections of a pair; the same on all ranks
  std::chrono::milliseconds hello_timeout{5000};

  // What a rank of another host has sent by one connection may come so much later than the end of
  // another: a lost packet is sent again within some 200 ms and a round trip.
  std::chrono::milliseconds on_its_way{1000};

  std::size_t segment_bytes = 256 * 1024;
  std::size_t longest_segment_bytes = 0;  // for long fat networks; 0: segment_bytes
  std::string
      rendezvous_host;  // whose route says which address to publish; empty: the default route's
};

TcpSettings tcp_settings(const Settings& settings);

// Collective over the request's ranks: all have published where they listen when it returns. Error
// kDeadline names the ranks that did not come.
std::unique_ptr<Transport> make_tcp(const TransportRequest& request, const TcpSettings& settings);

}  // namespace kolo
