// kolo-bench limits: what this machine can do at best, whatever the library.
//
// Its parts, as `--only` names them:
//
//   memory   all cores together read and write their own memory in place, and copy it: L2, L3, DRAM
//   line     a cache line's round trip between two cores
//   tcp      loopback: an 8-byte round trip
//   library  bare UCX and libfabric: an 8-byte round trip, and a stream of 1 MiB messages
//   shm_floor, tcp_floor   what a collective moves, over shared memory or TCP, with nothing around
//
// Nothing here is carried by the transports of this project.
//
// Floors of two ranks are emulations: all-reduce in floor.cpp, what goes one hop in one_hop.cpp,
// messages in messages.cpp, TCP in tcp.cpp. Of more ranks they are bounds, passes.cpp and tcp.cpp:
// the bytes that have to be read, written or sent, by all cores at once, and nobody waits for
// anybody. None is a proof: a library that orders its passes better can be quicker by a little.
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

// One line of the table that is no collective.
struct Limit {
  std::string what;
  std::string variant;
  std::size_t bytes = 0;
  Quantiles time_us;
  double gigabytes_per_second = 0;  // 0 where only time matters
  CoreDistance distance = {};       // how far apart the cores were then
};

std::vector<Limit> memory_limits(bool is_quick);

// Of float32 in place (all-to-all: apart), as the sizes of kolo-bench count: `bytes` of the whole.
struct FloorRequest {
  Collective collective = Collective::kAllReduce;
  int ranks = 2;
  std::size_t bytes = 0;
  bool is_mapped = false;  // over shm: both ranks can reach both buffers
  Pages pages = Pages::kOwn;
};

// Known are those of all collectives but a parameter server's, where every rank has an element or
// `bytes` of two; the barrier of two ranks; and of more ranks nothing of more than 4 GiB in all.
// Where there is a root it is rank 0.
bool has_floor(const FloorRequest& request);

// In about that many seconds, as a row of library "floor"; `algorithm` says which way was the
// quickest. The request must have a floor, and the process two cores.
Row shared_memory_floor(const FloorRequest& request, double seconds);
Row tcp_floor(const FloorRequest& request, double seconds);

// Of messages between two ranks, as games have them: latency is of one message one way, all else of
// a window.
struct MessagesRequest {
  P2pKind kind = P2pKind::kLatency;
  std::size_t bytes = 1;
  std::size_t window = 1;
};

struct MessagesFloor {
  double time_us = 0;
  std::uint64_t wrong = 0;  // bytes or elements, by all ways that were tried; of a window over tcp
                            // nothing is looked at
};

// Known are all but windows of less than 8 bytes, as a float of each rank's is the least, and of
// more than 256 MiB.
bool has_floor(const MessagesRequest& request);

MessagesFloor shared_memory_floor(const MessagesRequest& request, double seconds);
MessagesFloor tcp_floor(const MessagesRequest& request, double seconds);

// Of latency, with the congestion control that is the quickest.
MessagesFloor tcp_latency_floor(const MessagesRequest& request, double seconds);

// What they are made of: of two ranks answered in place, through slots, in one line, ...
Row all_reduce_floor(const FloorRequest& request, double seconds);
Row mapped_all_reduce_floor(const FloorRequest& request, double seconds);
Row one_hop_floor(const FloorRequest& request, double seconds);
Row memory_traffic_floor(const FloorRequest& request, double seconds);

// A floor's row, of rounds for about that many seconds, with probes before and after them.
Row floor_row(const FloorRequest& request, const char* transport, const std::string& algorithm,
              int threads, double seconds, const Round& round);

// Two ranks that send and receive all, and add each piece as it comes, with that congestion
// control.
Row tcp_adding(std::size_t bytes, const std::string& congestion, double seconds);

// TCP both ways with each congestion control, at several sizes, and the same with the sum, with the
// last of them.
std::vector<Row> tcp_all_reduce_floors(bool is_quick);

std::vector<Limit> tcp_round_trips();

// Of every provider of libfabric's that serves here, and of UCX as UCX_TLS has it: an 8-byte round
// trip, and a stream. One that does not serve is left out, and a line to standard error says why.
// The process must have two cores.
std::vector<Limit> library_limits(bool is_quick);

int run_limits(const Arguments& arguments);

}  // namespace kolo::bench
