// The executor's loop with recording of every step. A copy of its own, so that the normal loop has
// no cost for it.
#include <algorithm>

#include "collectives/executor/executor.h"
#include "collectives/executor/recorder.h"

namespace kolo::inline v0 {
namespace {

std::int16_t peer_of(const Channel* channel) {
  return channel == nullptr ? kNobody : static_cast<std::int16_t>(channel->peer());
}

}  // namespace

std::uint16_t Executor::track() const {
  if (header_.collective != Collective::kMessage || lines_.empty()) return kCollectiveTrack;
  const Line& line = lines_.front();
  const int peer = (line.to != nullptr ? line.to : line.from)->peer();
  return static_cast<std::uint16_t>((line.to != nullptr ? 1 : 2) + 2 * peer);
}

// Bytes of the segment that `line` has in this turn; 0 if it has none.
std::size_t Executor::bytes_in(const Line& line, std::size_t turn) const {
  if (turn < line.stage) return 0;
  const std::size_t segment = segment_in_turn(turn, line.stage, line.slice, schedule_.slices);
  if (segment >= line.segments) return 0;
  return std::min(segment_bytes_, line.bytes - segment * segment_bytes_);
}

bool Executor::advance_recorded() {
  for (; turn_ < turns_; ++turn_, step_ = 0) {
    for (; step_ < lines_.size(); ++step_) {
      Line& line = lines_[step_];
      const std::size_t bytes = bytes_in(line, turn_);
      if (bytes == 0) continue;
      const auto now = Clock::now();
      if (first_tried_ == Clock::time_point{}) first_tried_ = now;
      if (!run(line, turn_)) return prepare_to_wait();
      recorder_->add({static_cast<std::uint8_t>(line.kind), line.chunk, track(), peer_of(line.to),
                      peer_of(line.from), bytes, first_tried_, now, Clock::now()});
      first_tried_ = {};
    }
  }
  const auto now = Clock::now();
  if (first_tried_ == Clock::time_point{}) first_tried_ = now;
  if (!finish()) return false;
  if (first_tried_ != now) {
    StepRecord drain;
    drain.kind = StepRecord::kDrain;
    drain.track = track();
    drain.begin = first_tried_;
    drain.worked = now;
    drain.end = Clock::now();
    recorder_->add(drain);
  }
  first_tried_ = {};
  recorder_->end_operation(recorded_);
  return true;
}

}  // namespace kolo::inline v0
