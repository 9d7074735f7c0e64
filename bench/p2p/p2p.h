// kolo-bench p2p: measures messages between two ranks over several pipes in turn (pass.h).
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

// Messages of one sample: enough to make the clock's cost negligible, within 16 MiB; for latency
// within 64 KiB.
std::size_t window_of(const P2pRequest& request, std::size_t bytes);

// One pipe at one size.
struct P2pRow {
  P2pKind kind = P2pKind::kLatency;
  std::string library = "kolo";
  std::string level;
  std::string transport;
  std::string carrier;  // what the transport runs over, as in library.h
  std::string version;  // of the library; empty: unknown
  std::string peer;     // name in --against, "openmpi:ucx"; empty: no peer
  std::size_t bytes = 0;
  std::size_t window = 1;
  std::size_t samples = 0;             // counted ones
  std::size_t left_out = 0;            // samples that do not count, as in Row (measure.h)
  std::size_t segment_bytes = 0;       // requested; 0: the transport's choice
  Quantiles time_us;                   // latency: one message, one way; else the whole window
  std::optional<double> limit_us;      // the machine's limit, if known
  std::vector<double> pass_us;         // medians of the counted passes
  std::string device;                  // of the messages; empty: host memory
  std::optional<double> enqueue_us;    // time to enqueue a sample, on rank 0
  std::optional<std::uint64_t> wrong;  // bytes; none: not checked
  CoreDistance distance;
};

// Payload in bytes per nanosecond; of both directions if there are two.
double bandwidth(const P2pRow& row);
double messages_per_second(const P2pRow& row);

// The JSON line of a row (report.h), with p2p_KIND as `collective` and the level as `algorithm`,
// then window and messages_per_s. Bandwidths are of all messages.
std::string json_line(const P2pRow& p2p);

// Measures the pipes in turn at one size, with the limit. Collective over the group's two ranks.
// The rows are the same on both, except that only rank 0 knows the limit.
std::vector<P2pRow> measure_p2p(RankGroup& group, const Arguments& arguments,
                                const std::vector<Pipe*>& pipes, std::size_t bytes,
                                RunLimit* limit = nullptr);

// The pipes that the arguments ask for; the peers' come last, in their order. `device` is the
// device of the messages; null: host memory.
std::vector<std::unique_ptr<Pipe>> make_pipes(int rank, const Arguments& arguments,
                                              std::shared_ptr<Store> store,
                                              std::shared_ptr<DeviceMemory> device = {});

// Runs one rank's part of all sizes; rank 0 prints. Returns the number of wrong bytes.
std::uint64_t run_p2p(RankGroup& group, const Arguments& arguments,
                      const std::vector<std::unique_ptr<Pipe>>& pipes, std::ostream& table,
                      JsonLines& json, RunLimit* limit = nullptr);

}  // namespace kolo::bench
