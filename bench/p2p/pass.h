// A game that two ranks play with a pipe: messages of one size, timed and checked, as a turn of a
// benchmark has it (turn.h). Whoever plays, a rank of kolo-bench or a peer's own process
// (peers/mpi_worker.cpp), does it by this code.
//
//   latency         a message there and back; the time is half of that
//   bandwidth       a window of messages one way, until the last is known to have come
//   bidirectional   a window both ways at once
//   message-rate    as bandwidth, of short messages; counted instead of weighed
//
// Compare the OSU benchmarks osu_latency, osu_bw, osu_bibw and osu_mbw_mr. Unlike there, a window's
// messages lie in a row and differ: every byte that arrives is checked, and is not in any cache
// because the message before lay there as well.
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
  int warmup = 1;           // samples that do not count, before the first that does
  std::size_t samples = 0;  // that count; 0: as many as fit into `seconds`, by the warm-up
  double seconds = 0.1;
  bool is_checked = true;
  std::uint32_t salt = 0;  // of the run, so far: no two samples fill the memory alike
};

struct P2pPassResult {
  std::vector<double> times_us;  // of those that count; latency: one message one way, else a window
  std::uint64_t wrong = 0;       // bytes, of both ranks
  std::uint32_t salt = 0;        // of the run, afterwards
};

std::string to_text(const P2pPassRequest& turn);
std::string to_text(const P2pPassResult& result);

// Of a text that to_text did not write: std::invalid_argument.
P2pPassRequest parse_p2p_pass_request(const std::string& text);
P2pPassResult parse_p2p_pass_result(const std::string& text);

// Collective over the group's two ranks; the same result on both. Errors as of the pipe.
P2pPassResult run_pass(Pipe& pipe, const P2pPassRequest& turn, RankGroup& group);

}  // namespace kolo::bench
