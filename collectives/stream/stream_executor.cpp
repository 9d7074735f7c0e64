#include "collectives/stream/stream_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "collectives/schedule/turns.h"
#include "transports/base/check.h"

namespace kolo::inline v0 {
namespace {

bool has_answer(StepKind kind) {
  return kind == StepKind::kSendForAnswer || kind == StepKind::kReceiveReduceAnswer ||
         kind == StepKind::kAnswer || kind == StepKind::kReceiveAnswer;
}

// The steps of two ranks that reduce for each other. Held segments are not supported.
bool is_answered_at_once(const Step& step) {
  return step.kind != StepKind::kAnswer && !step.is_held;
}

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

void add_once(std::vector<int>& peers, int peer) {
  if (std::ranges::find(peers, peer) == peers.end()) peers.push_back(peer);
}

}  // namespace

StreamExecutor::StreamExecutor(Schedule schedule, std::span<StreamChannel* const> channels,
                               DeviceMath& math)
    : schedule_(std::move(schedule)), math_(math) {
  compile(channels);
}

StreamExecutor::~StreamExecutor() {
  for (std::byte* const scratch : scratches_made_) math_.free(scratch);
}

void StreamExecutor::compile(std::span<StreamChannel* const> channels) {
  parts_.resize(static_cast<std::size_t>(schedule_.chunks));
  scratch_index_.assign(parts_.size(), 0);
  for (const Step& step : schedule_.steps) {
    check(is_answered_at_once(step),
          fmt::format("{}: a device's stream cannot hold a segment and answer it later; use a "
                      "schedule without held segments",
                      schedule_.algorithm));
    check(step.kind != StepKind::kUpdate,
          fmt::format("{}: a server's update runs on the host, and not on a device's stream",
                      schedule_.algorithm));
    for (const Operand& operand : {step.in, step.out}) {
      if (operand.place != Place::kScratch || scratch_index_[operand.chunk] != 0) continue;
      scratch_index_[operand.chunk] = 1 + scratches_;
      scratches_ += static_cast<std::size_t>(schedule_.slices);
    }
    Line line;
    line.step = step;
    if (step.to != kNobody) line.to = channels[static_cast<std::size_t>(step.to)];
    if (step.from != kNobody) line.from = channels[static_cast<std::size_t>(step.from)];
    for (StreamChannel* const channel : {line.to, line.from}) {
      check(channel == nullptr || !has_answer(step.kind) || channel->answers() != nullptr,
            fmt::format("{}: the stream of this channel does not support answers in place; use a "
                        "schedule without answers",
                        schedule_.algorithm));
      if (channel != nullptr && std::ranges::find(used_, channel) == used_.end())
        used_.push_back(channel);
    }
    if (step.kind == StepKind::kSendForAnswer) line.step.out = answer_to(step);
    has_answers_ |= has_answer(step.kind);
    if (sends_segment(step.kind)) add_once(sends_to_, step.to);
    if (receives_segment(step.kind)) add_once(receives_from_, step.from);
    lines_.push_back(line);
  }
  slot_bytes_ = straight_bytes_ = std::numeric_limits<std::size_t>::max();
  for (const StreamChannel* const channel : used_) {
    const Capabilities& can = channel->capabilities();
    slot_bytes_ = std::min(slot_bytes_, can.segment_bytes);
    straight_bytes_ = std::min(straight_bytes_,
                               channel->can_send() ? can.straight_segment_bytes : std::size_t{0});
  }
}

// The operand into which the answer to this step is received. The peer stores the answer there.
Operand StreamExecutor::answer_to(const Step& asking) const {
  const auto taking = std::ranges::find_if(schedule_.steps, [&](const Step& step) {
    return step.kind == StepKind::kReceiveAnswer && step.to == asking.to &&
           step.chunk == asking.chunk && step.slice == asking.slice;
  });
  check(taking != schedule_.steps.end(),
        fmt::format("{}: an answer is never received", schedule_.algorithm));
  return taking->out;
}

// All ranks must compute the same length.
std::size_t StreamExecutor::choose_segment_bytes() const {
  if (binding_.segment_bytes != 0) return binding_.segment_bytes;
  const bool is_scaled = binding_.op == ReduceOp::kScaledSum;
  const bool is_straight = (schedule_.leaves_from_memory || has_answers_) && !is_scaled;
  const std::size_t most = is_straight ? std::max(slot_bytes_, straight_bytes_) : slot_bytes_;
  return most / kSegmentAlignment * kSegmentAlignment;
}

void StreamExecutor::start(const StreamBinding& binding) {
  check(!is_begun_,
        "an operation on a stream begins before the previous one was enqueued completely");
  check(!has_answers_ || binding.op != ReduceOp::kScaledSum,
        "a rank cannot answer a scaled sum, as it does not know the peer's factor");
  binding_ = binding;
  element_bytes_ = element_bytes(binding.type);
  if (binding.lengths.empty()) {
    layout_.split(binding.count, schedule_.chunks, schedule_.spans);
  } else {
    layout_.assign(binding.lengths);
  }
  measure();
  places_[static_cast<std::size_t>(Place::kInput)] =
      static_cast<std::byte*>(const_cast<void*>(binding.in));
  places_[static_cast<std::size_t>(Place::kOutput)] = static_cast<std::byte*>(binding.out);
  places_[static_cast<std::size_t>(Place::kScratch)] =
      scratches_made_.empty() ? nullptr : scratches_made_.back();
  turn_ = step_ = 0;
  is_half_done_ = false;
  awaited_peer_ = kNobody;
  is_begun_ = true;
  first_tried_ = {};
  headerless_peers_.clear();
  if (binding.before_receiving) headerless_peers_ = receives_from_;
  for (StreamChannel* const channel : used_) channel->begin(binding.stream);
  for (StreamChannel* const channel : used_) channel->combine_words(binding.stream);
}

void StreamExecutor::measure() {
  segment_bytes_ = choose_segment_bytes();
  for (std::size_t c = 0; c < parts_.size(); ++c) {
    const int chunk = static_cast<int>(c);
    Part& part = parts_[c];
    part.begin = layout_.begin(chunk) * element_bytes_;
    part.bytes = layout_.length(chunk) * element_bytes_;
    part.segments = segments_in(part.bytes, segment_bytes_);
  }
  turns_ = 0;
  for (Line& line : lines_) {
    line.in_begin = begin_of(line, line.step.in);
    line.out_begin = begin_of(line, line.step.out);
    const std::size_t segments = parts_[line.step.chunk].segments;
    turns_ = std::max(
        turns_, turns_until_end(segments, line.step.stage, line.step.slice, schedule_.slices));
  }
}

// Scratch is as long as this rank's segments. Freeing the previous scratch would wait for the
// device, so it is kept. The length at least doubles each time, which bounds the number of
// allocations.
void StreamExecutor::allocate_scratch() {
  const std::size_t bytes = std::max(needed_scratch(), 2 * scratch_bytes_);
  scratches_made_.push_back(math_.allocate(bytes));
  scratch_bytes_ = bytes;
  places_[static_cast<std::size_t>(Place::kScratch)] = scratches_made_.back();
}

std::size_t StreamExecutor::needed_scratch() const {
  return scratches_ == 0 ? 0 : scratches_ * aligned(longest_segment());
}

std::size_t StreamExecutor::longest_segment() const {
  std::size_t longest = 0;
  for (const Part& part : parts_) longest = std::max(longest, std::min(part.bytes, segment_bytes_));
  return longest;
}

std::size_t StreamExecutor::begin_of(const ChunkRange& held) const {
  return layout_.begin(held.first) * element_bytes_;
}

std::size_t StreamExecutor::begin_of(const Line& line, const Operand& operand) const {
  switch (operand.place) {
    case Place::kNone:
      return 0;
    case Place::kInput:
      return parts_[operand.chunk].begin - begin_of(schedule_.input);
    case Place::kOutput:
      return parts_[operand.chunk].begin - begin_of(schedule_.output);
    case Place::kScratch:
      return (scratch_index_[operand.chunk] - 1 + line.step.slice) * aligned(longest_segment());
  }
  return 0;
}

std::byte* StreamExecutor::address(const Operand& operand, std::size_t begin,
                                   std::size_t segment) const {
  std::byte* const place = places_[static_cast<std::size_t>(operand.place)];
  if (place == nullptr) return nullptr;
  return place + begin + (operand.place == Place::kScratch ? 0 : segment * segment_bytes_);
}

// --- running ---

bool StreamExecutor::advance() {
  check(is_begun_, "advance() before an operation was begun");
  if (lacks_scratch()) allocate_scratch();
  if (binding_.recorder != nullptr) [[unlikely]]
    return advance_recorded();
  for (; turn_ < turns_; ++turn_, step_ = 0) {
    for (; step_ < lines_.size(); ++step_) {
      const Line& line = lines_[step_];
      Piece piece;
      if (find_piece(line, turn_, piece) && !give(line, piece)) return false;
    }
  }
  return finish();
}

// True once `before_receiving` has succeeded for this peer.
bool StreamExecutor::may_receive(int peer) {
  const auto at = std::ranges::find(headerless_peers_, peer);
  if (at == headerless_peers_.end()) return true;
  if (!binding_.before_receiving(peer)) return wait_for(peer);
  headerless_peers_.erase(at);
  return true;
}

// Makes the rest of the stream wait until sent memory is free again. All channels are drained
// before the first is ended, as captured work needs.
bool StreamExecutor::finish() {
  while (!headerless_peers_.empty()) {
    if (!may_receive(headerless_peers_.back())) return false;
  }
  for (StreamChannel* const channel : used_) channel->drain(binding_.stream);
  for (StreamChannel* const channel : used_) channel->end(binding_.stream);
  is_begun_ = false;
  return true;
}

// The segment of `line` in this turn; false if it has none.
bool StreamExecutor::find_piece(const Line& line, std::size_t turn, Piece& piece) const {
  const Step& step = line.step;
  if (turn < step.stage) return false;
  const std::size_t segment = segment_in_turn(turn, step.stage, step.slice, schedule_.slices);
  const Part& part = parts_[step.chunk];
  if (segment >= part.segments) return false;
  piece.bytes = std::min(segment_bytes_, part.bytes - segment * segment_bytes_);
  piece.count = piece.bytes / element_bytes_;
  piece.in = address(step.in, line.in_begin, segment);
  piece.out = address(step.out, line.out_begin, segment);
  piece.is_straight = piece.bytes > slot_bytes_ || has_answer(step.kind);
  return true;
}

bool StreamExecutor::give(const Line& line, const Piece& piece) {
  if (!headerless_peers_.empty() && line.from != nullptr && !may_receive(line.step.from))
    return false;
  if (!run(line, piece)) return false;
  if (!binding_.counts.empty()) count(line, piece);
  ++moves_;
  return true;
}

void StreamExecutor::count(const Line& line, const Piece& piece) {
  if (sends_segment(line.step.kind)) {
    ChannelStatistics& to = binding_.counts[static_cast<std::size_t>(line.step.to)];
    to.bytes_sent += piece.bytes;
    ++to.segments_sent;
  }
  if (line.step.kind == StepKind::kReceiveReduceAnswer)
    binding_.counts[static_cast<std::size_t>(line.step.from)].bytes_sent += piece.bytes;
  if (line.step.kind == StepKind::kReceiveAnswer)
    binding_.counts[static_cast<std::size_t>(line.step.to)].bytes_received += piece.bytes;
  if (receives_segment(line.step.kind)) {
    ChannelStatistics& from = binding_.counts[static_cast<std::size_t>(line.step.from)];
    from.bytes_received += piece.bytes;
    ++from.segments_received;
  }
}

bool StreamExecutor::run(const Line& line, const Piece& piece) {
  switch (line.step.kind) {
    case StepKind::kSend:
      return send(line, piece);
    case StepKind::kReceive:
      return receive(line, piece);
    case StepKind::kReceiveSend:
      return receive_send(line, piece);
    case StepKind::kReceiveReduce:
      return receive_reduce(line, piece);
    case StepKind::kReceiveReduceSend:
    case StepKind::kReceiveReduceCopySend:
      return receive_reduce_send(line, piece);
    case StepKind::kCopy:
      take(line, piece, piece.out);
      return true;
    case StepKind::kReduce:
      reduce(line, piece, piece.out, nullptr, piece.out);
      return true;
    case StepKind::kReduceSend:
      return reduce_send(line, piece);
    case StepKind::kSendForAnswer:
      return line.to->answers()->send(binding_.stream, {piece.in, piece.bytes},
                                      {piece.out, piece.bytes}) ||
             wait_for(line.step.to);
    case StepKind::kReceiveReduceAnswer:
      return receive_reduce_answer(line, piece);
    case StepKind::kReceiveAnswer:
      return line.to->answers()->receive(binding_.stream, {piece.out, piece.bytes}) ||
             wait_for(line.step.to);
    case StepKind::kAnswer:
    case StepKind::kUpdate:
      break;  // rejected by compile()
  }
  return true;
}

bool StreamExecutor::send(const Line& line, const Piece& piece) {
  if (piece.is_straight)
    return line.to->send(binding_.stream, {piece.in, piece.bytes}, kPlain) ||
           wait_for(line.step.to);
  std::byte* const slot = reserve(line, piece);
  if (slot == nullptr) return false;
  take(line, piece, slot);
  line.to->commit(binding_.stream, kPlain);
  return true;
}

bool StreamExecutor::receive(const Line& line, const Piece& piece) {
  if (piece.is_straight)
    return line.from->receive(binding_.stream, {piece.out, piece.bytes}, kPlain) ||
           wait_for(line.step.from);
  const std::byte* const from = view(line, piece);
  if (from == nullptr) return false;
  copy(piece.out, from, piece.bytes);
  line.from->release(binding_.stream);
  return true;
}

bool StreamExecutor::receive_send(const Line& line, const Piece& piece) {
  if (piece.is_straight) {
    if (!is_half_done_ && !receive(line, piece)) return false;
    return send_kept(*line.to, line.step.to, piece);
  }
  const std::byte* const from = view(line, piece);
  std::byte* const slot = from == nullptr ? nullptr : reserve(line, piece);
  if (slot == nullptr) return false;
  copy(slot, from, piece.bytes);
  line.to->commit(binding_.stream, kPlain);
  if (piece.out != nullptr) copy(piece.out, from, piece.bytes);
  line.from->release(binding_.stream);
  return true;
}

bool StreamExecutor::receive_reduce(const Line& line, const Piece& piece) {
  const std::byte* const from = view(line, piece);
  if (from == nullptr) return false;
  reduce(line, piece, piece.out, nullptr, from);
  line.from->release(binding_.stream);
  return true;
}

bool StreamExecutor::receive_reduce_send(const Line& line, const Piece& piece) {
  if (piece.is_straight) {
    if (!is_half_done_ && !receive_reduce(line, piece)) return false;
    return send_kept(*line.to, line.step.to, piece);
  }
  const std::byte* const from = view(line, piece);
  std::byte* const slot = from == nullptr ? nullptr : reserve(line, piece);
  if (slot == nullptr) return false;
  reduce(line, piece, slot, piece.out, from);
  line.to->commit(binding_.stream, kPlain);
  line.from->release(binding_.stream);
  return true;
}

// The kernel stores the result twice: here and at the peer. If the peer offers no place, as its
// memory cannot be exported, the result is sent as a segment.
bool StreamExecutor::receive_reduce_answer(const Line& line, const Piece& piece) {
  if (!is_half_done_) {
    const std::byte* const from = view(line, piece);
    if (from == nullptr) return false;
    std::byte* const answer = line.from->answers()->place();
    reduce(line, piece, piece.out, answer, from);
    line.from->release(binding_.stream);
    if (answer != nullptr) return true;
  }
  return send_kept(*line.from, line.step.from, piece);
}

// Second half of a line that receives into memory and sends from there.
bool StreamExecutor::send_kept(StreamChannel& to, int peer, const Piece& piece) {
  is_half_done_ = true;
  if (!to.send(binding_.stream, {piece.out, piece.bytes}, kPlain)) return wait_for(peer);
  is_half_done_ = false;
  return true;
}

bool StreamExecutor::reduce_send(const Line& line, const Piece& piece) {
  std::byte* const slot = reserve(line, piece);
  if (slot == nullptr) return false;
  reduce(line, piece, slot, nullptr, piece.out);
  line.to->commit(binding_.stream, kPlain);
  return true;
}

std::byte* StreamExecutor::reserve(const Line& line, const Piece& piece) {
  std::byte* const slot = line.to->reserve(binding_.stream, piece.bytes);
  if (slot == nullptr) wait_for(line.step.to);
  return slot;
}

// A received segment, readable by a reduction; null if the peer's host has not enqueued it.
const std::byte* StreamExecutor::view(const Line& line, const Piece& piece) {
  const std::byte* const from = piece.is_straight
                                    ? line.from->view_sent(binding_.stream, piece.bytes)
                                    : line.from->view(binding_.stream, piece.bytes);
  if (from == nullptr) wait_for(line.step.from);
  return from;
}

// out = in, scaled if this line scales its input.
void StreamExecutor::take(const Line& line, const Piece& piece, std::byte* out) {
  if (scales(line)) {
    DeviceMath::Pass pass;
    pass.out = out;
    pass.left = piece.in;
    pass.count = piece.count;
    flush();
    return math_.multiply(binding_.type, pass, binding_.scale, binding_.stream);
  }
  if (out != piece.in) copy(out, piece.in, piece.bytes);
}

void StreamExecutor::copy(std::byte* out, const std::byte* from, std::size_t bytes) {
  flush();
  math_.copy(out, from, bytes, binding_.stream);
}

// The scaled operand must come first. A sum does not depend on the order of its two operands.
void StreamExecutor::reduce(const Line& line, const Piece& piece, void* out, void* copy,
                            const std::byte* incoming) {
  DeviceMath::Scaling scaling;
  if (scales(line)) scaling.factor = binding_.scale;
  if (line.step.is_final && binding_.op == ReduceOp::kAverage)
    scaling.divisor = schedule_.contributions;
  const bool is_in_last = line.step.is_in_last && !scales(line);
  DeviceMath::Pass pass;
  pass.out = out;
  pass.copy = copy;
  pass.left = is_in_last ? incoming : piece.in;
  pass.right = is_in_last ? piece.in : incoming;
  pass.count = piece.count;
  flush();
  math_.reduce(binding_.type, binding_.op, pass, scaling, binding_.stream);
}

// Words that the channels hold back go out before other work on the stream, and before this host
// waits.
void StreamExecutor::flush() {
  for (StreamChannel* const channel : used_) channel->flush(binding_.stream);
}

bool StreamExecutor::wait_for(int peer) {
  flush();
  awaited_peer_ = peer;
  return false;
}

std::string StreamExecutor::describe_wait() const {
  return fmt::format("rank {} to enqueue its part of {} on its stream", awaited_peer_,
                     describe_location());
}

std::string StreamExecutor::describe_location() const {
  return fmt::format("{} step {} of {}", schedule_.algorithm, std::min(step_ + 1, lines_.size()),
                     lines_.size());
}

std::size_t StreamExecutor::elements_to(int peer) const {
  std::size_t elements = 0;
  for (const Line& line : lines_) {
    if (line.step.to == peer && sends_segment(line.step.kind))
      elements += layout_.length(line.step.chunk);
  }
  return elements;
}

std::size_t StreamExecutor::elements_from(int peer) const {
  std::size_t elements = 0;
  for (const Line& line : lines_) {
    if (line.step.from == peer && receives_segment(line.step.kind))
      elements += layout_.length(line.step.chunk);
  }
  return elements;
}

}  // namespace kolo::inline v0
