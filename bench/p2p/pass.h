// Pass of a p2p benchmark: two ranks send messages of one size over a pipe, timed and checked.
// Ranks of kolo-bench and worker processes of peers (peers/mpi_worker.cpp) use the same code.
//
//   latency         a message there and back; the time is half of that
//   bandwidth       a window of messages one way, until the last is acknowledged
//   bidirectional   a window both ways at once
//   message-rate    as bandwidth, for short messages; reported as messages per second
//
// Compare the OSU benchmarks osu_latency, osu_bw, osu_bibw and osu_mbw_mr. Unlike there, the
// messages of a window differ and lie one after the other. So every received byte is checked, and
// is not in a cache because of the message before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/pattern.h"
#include "bench/measure/rank_group.h"
#include "bench/p2p/pipe.h"

namespace kolo::bench {

enum class P2pKind : std::uint8_t { kLatency, kBandwidth, kBidirectional, kMessageRate };

inline constexpr P2pKind kP2pKinds[] = {P2pKind::kLatency, P2pKind::kBandwidth,
                                        P2pKind::kBidirectional, P2pKind::kMessageRate};

std::string_view to_string(P2pKind kind);

struct P2pPassRequest {
  P2pKind kind = P2pKind::kLatency;
  std::size_t bytes = 1;    // of a message, at least 1
  std::size_t window = 1;   // messages of a sample
  int warmup = 1;           // uncounted samples before the first counted one
  std::size_t samples = 0;  // counted ones; 0: as many as fit into `seconds`, by the warm-up
  double seconds = 0.1;
  bool is_checked = true;
  std::uint32_t salt = 0;  // sample number within the run; each has its own data
};

struct P2pPassResult {
  std::vector<double> times_us;  // counted samples; latency: one message one way, else a window
  std::uint64_t wrong = 0;       // bytes on both ranks
  std::uint32_t salt = 0;        // sample number within the run, after the pass
};

std::string to_text(const P2pPassRequest& turn);
std::string to_text(const P2pPassResult& result);

// std::invalid_argument for texts that to_text did not write.
P2pPassRequest parse_p2p_pass_request(const std::string& text);
P2pPassResult parse_p2p_pass_result(const std::string& text);

// Collective over the group's two ranks; the same result on both. Errors as for the pipe.
P2pPassResult run_pass(Pipe& pipe, const P2pPassRequest& turn, RankGroup& group);

}  // namespace kolo::bench
