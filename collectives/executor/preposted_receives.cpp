// Preposted receives, for channels that request segments from their peer
// (transports/base/preposted_receives.h).
//
// If a long segment costs a request and an answer, the receiver should request several at once. The
// table says which segments come next and where they go. So a blocked executor walks ahead through
// the turns, and posts the receives of every channel in the order of arrival.
//
// A posted segment may arrive at any time. So the walk ends for a channel if an earlier piece that
// has not run touches the same memory. Pieces that have run do not matter: the received data
// depends on what was sent from that memory, or a copy was sent (schedule/buffer_reuse.h). Nothing
// is posted on a channel before its header has arrived, since another operation's segments may have
// other lengths.
#include <algorithm>

#include "collectives/executor/executor.h"
#include "transports/base/preposted_receives.h"

namespace kolo::inline v0 {
namespace {

// Most pieces looked at: each is compared with all before it.
constexpr std::size_t kFarthest = 48;

}  // namespace

void Executor::post_expected_receives() {
  posted_at_ = moves_;
  touched_.clear();
  std::size_t left = 0;  // channels that may take more
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

// False if no more can be posted on the channel.
bool Executor::expect(const Line& line, const Piece& piece) {
  Direction& in = in_[line.in_index];
  if (line.is_held || in.ahead > in.expecting->expected_segments()) return false;
  const std::size_t ahead = in.ahead++;
  if (!is_received(line, piece)) return in.expecting->expect(ahead, {});
  const std::span into(piece.out, piece.bytes);
  return !is_touched(into) && in.expecting->expect(ahead, into);
}

// True if the line takes its segment by receive(), not by view().
bool Executor::is_received(const Line& line, const Piece& piece) const {
  if (piece.opens_in && in_[line.in_index].payload > 0) return false;  // it travels with the header
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

}  // namespace kolo::inline v0
