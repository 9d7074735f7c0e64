// Where an executor leaves word of its steps, and what becomes of it: sums (profile.h) and a
// timeline.
//
// The timeline is a file of the Chrome trace format (JSON; chrome://tracing, Perfetto), for each
// rank and communicator one: so nobody has to be alive or reachable for it to be written, also
// where the job fails, which is when it is wanted most. Times are the host's monotonic clock, the
// same for all ranks of a host, so `kolo-bench timeline` can put several files side by side into
// one. Steps lie in memory set aside at the start; those that find it full are counted and left
// out. The file is written whole, or not at all, when the communicator ends.
//
// Threading: belongs to who drives the executors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/executor/call_header.h"
#include "collectives/profile.h"
#include "collectives/schedule.h"
#include "transports/transport.h"

namespace kolo {

inline constexpr std::size_t kTimelineSteps = std::size_t{1} << 18;  // 12 MiB
inline constexpr std::size_t kTimelineOperations = std::size_t{1} << 14;

// What runs at the same time is told on different tracks: collectives, which run one at a time, on
// this one; messages to rank p on 1 + 2 p, those from it on 2 + 2 p.
inline constexpr std::uint16_t kCollectiveTrack = 0;

// Calls on streams, while the host gives them to theirs: what is told there is the host's time to
// enqueue, and nothing of the device's. Its kinds of steps have sums of their own.
inline constexpr std::uint16_t kStreamTrack = 0xffff;

// A segment of a step, done.
struct StepRecord {
  // No step: the wait for the last sends, which on a stream is the stream's.
  static constexpr std::uint8_t kDrain = 255;
  // None either, on streams: an opening (stream/stream_queue.h), given to a rank, or heard of one.
  static constexpr std::uint8_t kOpening = 254;

  std::uint8_t kind = 0;  // a StepKind
  std::uint16_t chunk = 0;
  std::uint16_t track = 0;  // as its operation's
  std::int16_t to = kNobody;
  std::int16_t from = kNobody;
  std::size_t bytes = 0;
  Clock::time_point begin;   // when it was tried first
  Clock::time_point worked;  // when the try began that did it
  Clock::time_point end;
};

class Recorder {
 public:
  // `rank`: of the job. `file`: of the timeline; empty: none is kept. std::invalid_argument where
  // nothing can be written there.
  Recorder(int rank, std::string file);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Several may be open at once, each on a track of its own. The number that ends it again.
  std::size_t begin_operation(const CallHeader& header, std::string_view algorithm,
                              std::uint16_t track);
  void end_operation(std::size_t number);
  void add(const StepRecord& step);

  // Kinds that have occurred.
  std::vector<StepProfile> profile() const;

  // Writes the timeline, if one is kept. Error kSystem where it cannot.
  void write() const;

  // The timeline's text.
  std::string json() const;

 private:
  struct Sum {
    std::uint64_t steps = 0;
    std::uint64_t bytes = 0;
    Clock::duration worked{};
    Clock::duration waited{};
  };
  struct OperationRecord {
    CallHeader header;
    std::string_view algorithm;
    std::uint16_t track = 0;
    Clock::time_point begin;
    Clock::time_point end;  // zero: it never ended
  };

  static constexpr std::size_t kKinds = static_cast<std::size_t>(StepKind::kUpdate) + 1;

  int rank_;
  std::string file_;
  using Sums = std::array<Sum, kKinds + 2>;  // the last two are kOpening's and kDrain's

  Sums sums_{};
  Sums enqueued_{};  // those of kStreamTrack
  std::vector<StepRecord> steps_;
  std::vector<OperationRecord> operations_;
  std::uint64_t left_out_ = 0;
};

// "t.json" of rank 3 is "t.3.json"; of a communicator that is not the first of its name, or is not
// the world, "t.NAME.3.json". Names keep their letters and digits.
std::string timeline_file(std::string_view file, std::string_view communicator, int rank);

}  // namespace kolo
