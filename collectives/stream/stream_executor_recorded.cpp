// The stream executor's loop with recording of every step: how long the host took to enqueue it,
// and how long it waited for a peer's host before.
#include <cstdint>

#include "collectives/executor/recorder.h"
#include "collectives/stream/stream_executor.h"

namespace kolo::inline v0 {

bool StreamExecutor::advance_recorded() {
  const auto begin = [this] {
    const auto now = Clock::now();
    if (first_tried_ == Clock::time_point{}) first_tried_ = now;
    return now;
  };
  const auto add = [this](StepRecord record, Clock::time_point worked) {
    record.track = kStreamTrack;
    record.begin = first_tried_;
    record.worked = worked;
    record.end = Clock::now();
    binding_.recorder->add(record);
    first_tried_ = {};
  };
  for (; turn_ < turns_; ++turn_, step_ = 0) {
    for (; step_ < lines_.size(); ++step_) {
      const Line& line = lines_[step_];
      Piece piece;
      if (!find_piece(line, turn_, piece)) continue;
      const auto now = begin();
      if (!give(line, piece)) return false;
      StepRecord record;
      record.kind = static_cast<std::uint8_t>(line.step.kind);
      record.chunk = line.step.chunk;
      record.to = static_cast<std::int16_t>(line.step.to);
      record.from = static_cast<std::int16_t>(line.step.from);
      record.bytes = piece.bytes;
      add(record, now);
    }
  }
  const auto now = begin();
  if (!finish()) return false;
  StepRecord drain;
  drain.kind = StepRecord::kDrain;
  add(drain, now);
  return true;
}

}  // namespace kolo::inline v0
