// What is to come, for channels that ask their peer for it (transports/base/preposted_receives.h).
//
// Where a long segment costs a question and an answer, its receiver had better ask for several at
// once. What the lines will take next, and where to, follows from the table: whoever is blocked
// walks on through the turns from where it stands and says so, channel by channel, in the order in
// which segments come there. What is expected may arrive at any time from then on; so a walk is
// over for a channel where a piece before, still to be run, touches the same memory. What has run
// already may be overwritten: the table lets only such memory leave without a copy to which what
// is received descends from (schedule/buffer_reuse.h). Nothing is expected on a channel whose
// header has not come yet: another operation's segments may have any length.
#include <algorithm>

#include "collectives/executor/executor.h"
#include "transports/base/preposted_receives.h"

namespace kolo {
namespace {

// Pieces that are looked at: each is compared with all before it.
constexpr std::size_t kFarthest = 48;

}  // namespace

void Executor::post_expected_receives() {
  posted_at_ = moves_;
  touched_.clear();
  std::size_t left = 0;  // channels of which more can be told
  for (Direction& in : in_) {
    in.ahead = 0;
    in.is_posting_done = in.expecting == nullptr || !is_open(in);
    left += in.is_posting_done ? 0 : 1;
  }
  std::size_t pieces = 0;
  std::size_t step = step_;
  for (std::size_t turn = turn_; turn < turns_; ++turn, step = 0) {
    for (; step < lines_.size() && left > 0; ++step) {
      const Line& line = lines_[step];
      Piece piece;
      std::size_t segment = 0;
      if (!find_piece(line, turn, piece, segment)) continue;
      if (++pieces > kFarthest) return;
      const bool has_come = is_half_done_ && turn == turn_ && step == step_;
      if (line.in_index != kNoDirection && !has_come && !in_[line.in_index].is_posting_done &&
          !expect(line, piece)) {
        in_[line.in_index].is_posting_done = true;
        --left;
      }
      if (piece.in != nullptr) touched_.emplace_back(piece.in, piece.bytes);
      if (piece.out != nullptr) touched_.emplace_back(piece.out, piece.bytes);
    }
    if (left == 0) return;
  }
}

// False where no more can be told of the channel.
bool Executor::expect(const Line& line, const Piece& piece) {
  Direction& in = in_[line.in_index];
  if (line.is_held || in.ahead > in.expecting->expected_segments()) return false;
  const std::size_t ahead = in.ahead++;
  if (!is_received(line, piece)) return in.expecting->expect(ahead, {});
  const std::span into(piece.out, piece.bytes);
  return !is_touched(into) && in.expecting->expect(ahead, into);
}

// Whether the line takes its segment by receive(), and not by view().
bool Executor::is_received(const Line& line, const Piece& piece) const {
  if (piece.opens_in && in_[line.in_index].payload > 0) return false;  // it is in the opening
  if (line.kind == StepKind::kReceive) return true;
  return line.kind == StepKind::kReceiveSend && line.is_direct && !is_inline(line, piece);
}

bool Executor::is_touched(std::span<const std::byte> memory) const {
  const auto is_over = [memory](std::span<const std::byte> other) {
    return other.data() < memory.data() + memory.size() &&
           memory.data() < other.data() + other.size();
  };
  return std::any_of(touched_.begin(), touched_.end(), is_over);
}

}  // namespace kolo
