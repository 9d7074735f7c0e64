// Recorder of an executor's steps: sums per kind of step (profile.h) and a timeline.
//
// The timeline is a file in the Chrome trace format (JSON; chrome://tracing, Perfetto). Each rank
// and communicator writes a file of its own. So a timeline needs no other rank alive, also when the
// job fails, when it is most useful. Times are from the host's monotonic clock, which all ranks of
// a host share. The file names this clock and the host's wall clock, so `kolo-bench timeline` can
// merge files of any hosts. Steps are stored in memory allocated at the start. Steps beyond its
// capacity are only counted. The file is written when the communicator ends, complete or not at
// all.
//
// Threading: only the engine's driver calls it.
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

namespace kolo::inline v0 {

inline constexpr std::size_t kTimelineSteps = std::size_t{1} << 18;  // 12 MiB
inline constexpr std::size_t kTimelineOperations = std::size_t{1} << 14;

// Track numbers. Collectives run one at a time, on this track. Messages run side by side: those to
// rank p on track 1 + 2 p, those from it on 2 + 2 p.
inline constexpr std::uint16_t kCollectiveTrack = 0;

// Calls on streams. Times are the host's time to enqueue, not the device's. Their kinds of steps
// have sums of their own.
inline constexpr std::uint16_t kStreamTrack = 0xffff;

// One finished segment of a step.
struct StepRecord {
  // Not a step: the wait for the last sends. On streams the stream waits, not the host.
  static constexpr std::uint8_t kDrain = 255;
  // Not a step: on streams, a call header (stream/stream_queue.h) that was sent or received.
  static constexpr std::uint8_t kOpening = 254;

  std::uint8_t kind = 0;  // a StepKind
  std::uint16_t chunk = 0;
  std::uint16_t track = 0;  // track of its operation
  std::int16_t to = kNobody;
  std::int16_t from = kNobody;
  std::size_t bytes = 0;
  Clock::time_point begin;   // start of the first try
  Clock::time_point worked;  // start of the successful try
  Clock::time_point end;
};

class Recorder {
 public:
  // `rank`: in the job. `file`: of the timeline; empty: no timeline. Throws std::invalid_argument
  // if the file cannot be written. `communicator`: its name, equal on all of its ranks.
  // `source`: the option or setting that names the file, for this error.
  Recorder(int rank, std::string file, std::string communicator = "",
           std::string_view source = "KOLO_TIMELINE");
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Several operations may be open at once, on different tracks. Returns the number to end it with.
  std::size_t begin_operation(const CallHeader& header, std::string_view algorithm,
                              std::uint16_t track);
  void end_operation(std::size_t number);
  void add(const StepRecord& step);

  // Kinds of steps that have occurred.
  std::vector<StepProfile> profile() const;

  // Writes the timeline, if there is one. Throws Error kSystem on failure.
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
    Clock::time_point end;  // zero: not ended
  };

  static constexpr std::size_t kKinds = static_cast<std::size_t>(StepKind::kUpdate) + 1;

  int rank_;
  std::string file_;
  std::string communicator_;
  using Sums = std::array<Sum, kKinds + 2>;  // the last two are for kOpening and kDrain

  Sums sums_{};
  Sums enqueued_{};  // for kStreamTrack
  std::vector<StepRecord> steps_;
  std::vector<OperationRecord> operations_;
  std::uint64_t left_out_ = 0;
};

// For rank 3, "t.json" becomes "t.3.json". For a communicator other than the first "world" it
// becomes "t.NAME.3.json"; characters other than letters and digits are replaced by '-'.
std::string timeline_file(std::string_view file, std::string_view communicator, int rank);

}  // namespace kolo::inline v0
