// Brief operations: those of a few bytes, in which no line of the table has more than one segment.
//
// There the loop over turns and segments has nothing left to compute. Which lines run, in which
// order and on which bytes follows from the lengths alone, so it is written down once, as a list of
// actions: the same steps on the same segments, in an order that lets chunks for one peer go
// together (brief_order.h) and is proved as the program's own is. A step whose segment travels with
// the header (a cache line, in shared memory) runs here, without a call in between; any other runs
// as ever.
#include <algorithm>
#include <cstring>

#include "collectives/brief_order.h"
#include "collectives/executor.h"
#include "transports/copy_words.h"

namespace kolo {
namespace {

// memcpy of what an opening carries: the same bytes twice, where the count is no power of two,
// rather than a call.
void copy_payload(std::byte* to, const std::byte* from, std::size_t bytes) {
  static_assert(kOpeningPayload <= 32);
  const auto both_ends = [=](auto word) {
    auto last = word;
    std::memcpy(&word, from, sizeof(word));
    std::memcpy(&last, from + bytes - sizeof(word), sizeof(word));
    std::memcpy(to, &word, sizeof(word));
    std::memcpy(to + bytes - sizeof(word), &last, sizeof(word));
  };
  struct Sixteen {
    std::uint64_t words[2];
  };
  if (bytes >= 16) return both_ends(Sixteen{});
  if (bytes >= 8) return both_ends(std::uint64_t{});
  if (bytes >= 4) return both_ends(std::uint32_t{});
  for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
}

}  // namespace

void Executor::find_actions() {
  actions_.clear();
  const auto has_line = [](const Direction& direction) { return direction.first != nullptr; };
  is_opened_by_lines_ = std::ranges::all_of(out_, has_line) && std::ranges::all_of(in_, has_line);
  const bool is_brief =
      std::ranges::all_of(lines_, [](const Line& line) { return line.segments <= 1; });
  if (!is_brief) return;
  const Step* before = nullptr;
  for (const std::size_t step : brief_order_) {
    Line& line = lines_[step];
    if (line.segments == 0) continue;
    const Step& now = schedule_.steps[step];
    if (before != nullptr && is_followed(*before, now)) actions_.back().flags = kMore;
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
  if (is_sent && line.opens_out && out_[line.out_index].payload > 0) {
    action.form = Form::kSend;
    action.channel = line.to;
    action.direction = &out_[line.out_index];
  }
  if ((is_received || is_reduced) && line.opens_in && in_[line.in_index].payload > 0) {
    action.form = is_received ? Form::kReceive : Form::kReceiveReduce;
    action.channel = line.from;
    action.direction = &in_[line.in_index];
  }
  return action;
}

// As send() with the payload in the opening.
inline bool Executor::send_brief(const Action& action) {
  std::byte* opening = action.channel->reserve(kOpeningBytes);
  if (opening == nullptr) return blocked_out(*action.channel, action.bytes);
  copy_words(opening, &header_, sizeof(header_) / 8);
  copy_payload(opening + sizeof(header_), places_[action.in_place] + action.in_begin, action.bytes);
  action.channel->commit(action.flags);
  header_bytes_sent_ += kOpeningBytes - action.bytes;
  action.direction->opened = operation_;
  ++moves_;
  return true;
}

// As receive() and receive_reduce() with the payload in the opening.
inline bool Executor::receive_brief(const Action& action) {
  const std::byte* opening = action.channel->view(kOpeningBytes);
  if (opening == nullptr) return blocked_in(*action.channel, kOpeningBytes);
  if (!is_open(*action.direction)) {
    if (!header_.is(opening)) refuse(action.channel->peer(), opening, header_);
    header_bytes_received_ += kOpeningBytes - action.bytes;
    action.direction->opened = operation_;
  }
  const std::byte* payload = opening + sizeof(header_);
  std::byte* out = places_[action.out_place] + action.out_begin;
  if (action.form == Form::kReceive) {
    copy_payload(out, payload, action.bytes);
  } else {
    const std::byte* own = places_[action.in_place] + action.in_begin;
    const bool is_own_last = action.line->is_in_last;
    kernel_(out, nullptr, is_own_last ? payload : own, is_own_last ? own : payload, action.elements,
            action.line->is_final ? divisor_ : 1);
  }
  action.channel->release();
  ++moves_;
  return true;
}

inline bool Executor::act(const Action& action) {
  switch (action.form) {
    case Form::kSend:
      return send_brief(action);
    case Form::kReceive:
    case Form::kReceiveReduce:
      return receive_brief(action);
    case Form::kOther:
      break;
  }
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

bool Executor::advance_brief() {
  for (; action_ < actions_.size(); ++action_) {
    const Action& action = actions_[action_];
    step_ = action.step;
    if (!act(action)) return false;
  }
  step_ = 0;
  return is_opened_by_lines_ ? is_drained() : finish();
}

}  // namespace kolo
