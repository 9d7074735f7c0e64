// kolo-bench limits: what this machine can do, independent of any library and without kolo's
// transports.
//
// Parts, as `--only` names them:
//
//   memory   all cores together read and write their own memory in place, and copy it: L2, L3, DRAM
//   line     a cache line's round trip between two cores
//   tcp      loopback: an 8-byte round trip
//   library  bare UCX and libfabric: an 8-byte round trip, and a stream of 1 MiB messages
//   shm_floor, tcp_floor   the bytes of a collective over shared memory or TCP, with nothing around
//
// Floors of two ranks are emulations: all-reduce in shm_all_reduce.cpp, collectives of one hop in
// shm_one_hop.cpp, messages in p2p_messages.cpp, TCP in tcp_loopback.cpp. Floors of more ranks are
// bounds (shm_memory_traffic.cpp, tcp_loopback.cpp): all cores read, write or send the necessary
// bytes at once, without waits. No floor is a proof: a library that orders its passes better can be
// slightly faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cli/arguments.h"
#include "bench/limits/thread_team.h"
#include "bench/measure/measure.h"
#include "bench/p2p/pass.h"

namespace kolo::bench {

inline constexpr std::string_view kLimits[] = {"line",    "memory",    "tcp",
                                               "library", "shm_floor", "tcp_floor"};

// A line of the table that is not a collective.
struct Limit {
  std::string what;
  std::string variant;
  std::size_t bytes = 0;
  Quantiles time_us;
  double gigabytes_per_second = 0;  // 0 if only the time matters
  CoreDistance distance = {};       // distance of the cores meanwhile
};

std::vector<Limit> memory_limits(bool is_quick);

// A floor of float32 in place (all-to-all: out of place); `bytes` is the size of the whole, as in
// kolo-bench.
struct FloorRequest {
  Collective collective = Collective::kAllReduce;
  int ranks = 2;
  std::size_t bytes = 0;
  bool is_mapped = false;  // over shm: both ranks can reach both buffers
  Pages pages = Pages::kOwn;
};

// Whether a floor is known. It is known for all collectives except a parameter server's, if every
// rank has at least an element; for the barrier, of two ranks only. With more than two ranks the
// total is at most 4 GiB. The root is rank 0.
bool has_floor(const FloorRequest& request);

// Measures a floor for about `seconds`; returns a row of library "floor", whose `algorithm` is the
// fastest way. The request must have a floor, and the process two cores.
Row shared_memory_floor(const FloorRequest& request, double seconds);
Row tcp_floor(const FloorRequest& request, double seconds);

// A floor of messages between two ranks, as in p2p passes: latency is one message one way, the
// other kinds a window.
struct MessagesRequest {
  P2pKind kind = P2pKind::kLatency;
  std::size_t bytes = 1;
  std::size_t window = 1;
};

struct MessagesFloor {
  double time_us = 0;
  std::uint64_t wrong = 0;  // bytes or elements, over all ways; windows over tcp are
                            // not checked
};

// True if a floor can be measured. A window needs at least 8 bytes (one float per rank) and at most
// 256 MiB. For latency, one byte per message is enough.
bool has_floor(const MessagesRequest& request);

MessagesFloor shared_memory_floor(const MessagesRequest& request, double seconds);
MessagesFloor tcp_floor(const MessagesRequest& request, double seconds);

// The latency floor over TCP, with the fastest congestion control.
MessagesFloor tcp_latency_floor(const MessagesRequest& request, double seconds);

// The parts of the floors above: answered in place, through slots, in one line, ...
Row all_reduce_floor(const FloorRequest& request, double seconds);
Row mapped_all_reduce_floor(const FloorRequest& request, double seconds);
Row one_hop_floor(const FloorRequest& request, double seconds);
Row memory_traffic_floor(const FloorRequest& request, double seconds);

// A floor's row from rounds for about `seconds`, with probes before and after.
Row floor_row(const FloorRequest& request, const char* transport, const std::string& algorithm,
              int threads, double seconds, const Round& round);

// Two ranks send and receive everything and add each piece when it arrives, with this congestion
// control.
Row tcp_adding(std::size_t bytes, const std::string& congestion, double seconds);

// TCP both ways with each congestion control at several sizes, and with the sum for the last one.
std::vector<Row> tcp_all_reduce_floors(bool is_quick);

std::vector<Limit> tcp_round_trips();

// An 8-byte round trip and a stream for UCX (by UCX_TLS) and for every usable provider of
// libfabric. Unusable ones are left out, and standard error has the reason. The process must have
// two cores.
std::vector<Limit> library_limits(bool is_quick);

int run_limits(const Arguments& arguments);

}  // namespace kolo::bench
