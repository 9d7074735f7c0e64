// kolo-bench p2p: two ranks, and what one of them can do for the other by each of several pipes, in
// turn (game.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/cache_line.h"
#include "bench/measure/statistics.h"
#include "bench/p2p/pass.h"
#include "bench/p2p/pipe.h"
#include "transports/rendezvous.h"

namespace kolo::bench {

struct Arguments;
class JsonLines;
class RankGroup;
class RunLimit;

enum class P2pLevel : std::uint8_t { kSegments, kMessages, kBoth, kLibrary };

inline constexpr P2pLevel kP2pLevels[] = {P2pLevel::kSegments, P2pLevel::kMessages, P2pLevel::kBoth,
                                          P2pLevel::kLibrary};

std::string_view to_string(P2pLevel level);

struct P2pRequest {
  P2pKind kind = P2pKind::kLatency;
  P2pLevel level = P2pLevel::kSegments;
  int window = 0;  // messages of a sample; 0: window_of
};

// Messages of one sample: as many as one clock's reading is nothing beside, and as fit 16 MiB, or
// 64 KiB where each waits for the one before.
std::size_t window_of(const P2pRequest& request, std::size_t bytes);

// One pipe at one size.
struct P2pRow {
  P2pKind kind = P2pKind::kLatency;
  std::string library = "kolo";
  std::string level;
  std::string transport;
  std::string carrier;  // what that goes over, as in library.h
  std::string version;  // of the library; empty: unknown
  std::string peer;     // as --against named it, "openmpi:ucx"; empty: no peer
  std::size_t bytes = 0;
  std::size_t window = 1;
  std::size_t samples = 0;             // that count
  std::size_t left_out = 0;            // others, as of a Row (measure.h)
  std::size_t segment_bytes = 0;       // asked for; 0: the transport's choice
  Quantiles time_us;                   // latency: of one message, one way; else of the whole window
  std::optional<double> limit_us;      // what that takes at least, as far as known
  std::vector<double> pass_us;         // medians of the turns that count
  std::string device;                  // whose memory the messages are in; empty: the host's
  std::optional<double> enqueue_us;    // of a sample's work, to give it there, on rank 0
  std::optional<std::uint64_t> wrong;  // bytes; none: not checked
  CoreDistance distance;
};

// Payload of both directions where there are two, bytes per nanosecond.
double bandwidth(const P2pRow& row);
double messages_per_second(const P2pRow& row);

// A row's (report.h) with `collective` p2p_KIND and the level as `algorithm`, and then window and
// messages_per_s; bandwidths are those of all messages.
std::string json_line(const P2pRow& p2p);

// The pipes in turn at one size, with the limit; the same rows on both ranks, but for the limit,
// which rank 0 knows. Collective over the group's two
// ranks.
std::vector<P2pRow> measure_p2p(RankGroup& group, const Arguments& arguments,
                                const std::vector<Pipe*>& pipes, std::size_t bytes,
                                RunLimit* limit = nullptr);

// Those that the arguments ask for: the peers' come last, in their order. `device`: whose memory
// the messages lie in; null: the host's.
std::vector<std::unique_ptr<Pipe>> make_pipes(int rank, const Arguments& arguments,
                                              std::shared_ptr<Store> store,
                                              std::shared_ptr<DeviceMemory> device = {});

// One rank's part in all sizes, printed by rank 0; returns how many bytes were wrong.
std::uint64_t run_p2p(RankGroup& group, const Arguments& arguments,
                      const std::vector<std::unique_ptr<Pipe>>& pipes, std::ostream& table,
                      JsonLines& json, RunLimit* limit = nullptr);

}  // namespace kolo::bench
