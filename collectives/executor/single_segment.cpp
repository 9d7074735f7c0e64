// Single-segment operations: no line of the table has more than one segment.
//
// Which lines run, in which order and on which bytes then follows from the lengths alone. So this
// is computed once, as a list of actions, and no loop over turns and segments runs. The actions are
// the same steps on the same segments. Their order lets chunks for one peer travel together
// (schedule/coalesced_order.h); the checker proves it like any program.
//
// A segment that travels with the header (a cache line in shm) is handled here, without calls in
// between. So is a segment that follows the header at once, if the channel supports that. All other
// steps run as in the loop.
#include <algorithm>

#include "collectives/executor/executor.h"
#include "collectives/schedule/coalesced_order.h"
#include "transports/base/copy_words.h"

namespace kolo::inline v0 {

void Executor::find_actions() {
  actions_.clear();
  const auto has_line = [](const Direction& direction) { return direction.first != nullptr; };
  is_opened_by_lines_ = std::ranges::all_of(out_, has_line) && std::ranges::all_of(in_, has_line);
  const bool is_single_segment =
      std::ranges::all_of(lines_, [](const Line& line) { return line.segments <= 1; });
  if (!is_single_segment) return;
  const Step* before = nullptr;
  for (const std::size_t step : coalesced_order_) {
    Line& line = lines_[step];
    if (line.segments == 0) continue;
    const Step& now = schedule_.steps[step];
    if (before != nullptr && is_coalesced_with_next(*before, now)) actions_.back().flags = kMore;
    actions_.push_back(action_of(line, step));
    before = &now;
  }
}

Executor::Action Executor::action_of(Line& line, std::size_t step) {
  Action action;
  action.in_place = static_cast<std::uint8_t>(line.in_operand.place);
  action.out_place = static_cast<std::uint8_t>(line.out_operand.place);
  action.in_begin = line.in_begin;
  action.out_begin = line.out_begin;
  action.bytes = line.bytes;
  action.elements = line.bytes / element_bytes_;
  action.step = step;
  action.line = &line;
  const bool is_sent = line.kind == StepKind::kSend;
  const bool is_received = line.kind == StepKind::kReceive && !line.is_held;
  const bool is_reduced = line.kind == StepKind::kReceiveReduce && !line.is_held;
  if (is_sent && line.opens_out) {
    action.form = out_[line.out_index].payload > 0 ? Form::kSend : Form::kSendBehind;
    action.channel = line.to;
    action.direction = &out_[line.out_index];
  }
  if ((is_received || is_reduced) && line.opens_in) {
    const bool is_with_header = in_[line.in_index].payload > 0;
    action.form = is_received
                      ? (is_with_header ? Form::kReceive : Form::kReceiveBehind)
                      : (is_with_header ? Form::kReceiveReduce : Form::kReceiveReduceBehind);
    action.channel = line.from;
    action.direction = &in_[line.in_index];
  }
  return action;
}

// Like send() with the payload in the header's segment.
inline bool Executor::send_single_segment(const Action& action) {
  const std::byte* const payload = places_[action.in_place] + action.in_begin;
  if (!action.channel->send_gathered(std::as_bytes(std::span(&header_, 1)), {payload, action.bytes},
                                     kHeaderSegmentBytes, action.flags)) {
    return blocked_out(*action.channel, action.bytes);
  }
  header_bytes_sent_ += kHeaderSegmentBytes - action.bytes;
  action.direction->opened = operation_;
  ++moves_;
  return true;
}

inline void Executor::require_mine(const Action& action, const std::byte* opening) {
  if (!header_.is(opening)) refuse(action.channel->peer(), opening, header_);
}

inline void Executor::take_in(const Action& action, const std::byte* payload) {
  std::byte* const out = places_[action.out_place] + action.out_begin;
  if (action.form == Form::kReceive || action.form == Form::kReceiveBehind)
    return copy_few(out, payload, action.bytes);
  const std::byte* own = places_[action.in_place] + action.in_begin;
  const bool is_own_last = action.line->is_in_last;
  kernel_(out, nullptr, is_own_last ? payload : own, is_own_last ? own : payload, action.elements,
          action.line->is_final ? divisor_ : 1);
}

// Like receive() and receive_reduce() with the payload in the header's segment.
inline bool Executor::receive_single_segment(const Action& action) {
  const std::byte* opening = action.channel->view_unaligned(kHeaderSegmentBytes);
  if (opening == nullptr) return blocked_in(*action.channel, 0);
  if (!is_open(*action.direction)) {
    require_mine(action, opening);
    header_bytes_received_ += kHeaderSegmentBytes - action.bytes;
    action.direction->opened = operation_;
  }
  take_in(action, opening + sizeof(header_));
  action.channel->release();
  ++moves_;
  return true;
}

// Like open_out() and send(), in one call of the channel.
inline bool Executor::send_behind(const Action& action) {
  const std::byte* const payload = places_[action.in_place] + action.in_begin;
  if (is_open(*action.direction) ||
      !action.channel->send_both(std::as_bytes(std::span(&header_, 1)), kHeaderSegmentBytes,
                                 {payload, action.bytes}, action.flags)) {
    return act_as_line(action);
  }
  header_bytes_sent_ += kHeaderSegmentBytes;
  action.direction->opened = operation_;
  ++moves_;
  return true;
}

// Like open_in() and receive() or receive_reduce(), if both segments have arrived.
inline bool Executor::receive_behind(const Action& action) {
  const Both both = is_open(*action.direction)
                        ? Both{}
                        : action.channel->view_both(kHeaderSegmentBytes, action.bytes);
  if (both.first == nullptr) return act_as_line(action);
  require_mine(action, both.first);
  header_bytes_received_ += kHeaderSegmentBytes;
  action.direction->opened = operation_;
  take_in(action, both.next);
  action.channel->release_both();
  ++moves_;
  return true;
}

inline bool Executor::act(const Action& action) {
  switch (action.form) {
    case Form::kSend:
      return send_single_segment(action);
    case Form::kReceive:
    case Form::kReceiveReduce:
      return receive_single_segment(action);
    case Form::kSendBehind:
      return send_behind(action);
    case Form::kReceiveBehind:
    case Form::kReceiveReduceBehind:
      return receive_behind(action);
    case Form::kOther:
      break;
  }
  return act_as_line(action);
}

bool Executor::act_as_line(const Action& action) {
  Line& line = *action.line;
  Piece piece;
  piece.bytes = action.bytes;
  piece.in = address(line.in_operand, line.in_begin);
  piece.out = address(line.out_operand, line.out_begin);
  piece.opens_out = line.opens_out;
  piece.opens_in = line.opens_in;
  piece.flags = action.flags;
  return run(line, piece, 0);
}

bool Executor::advance_single_segment() {
  for (; action_ < actions_.size(); ++action_) {
    const Action& action = actions_[action_];
    step_ = action.step;
    if (!act(action)) return false;
  }
  step_ = 0;
  return is_opened_by_lines_ ? is_drained() : finish();
}

}  // namespace kolo::inline v0
