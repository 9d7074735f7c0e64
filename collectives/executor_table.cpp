// From a schedule to the executor's table of lines: once per schedule, and again in part when the
// lengths change.
#include <algorithm>
#include <stdexcept>

#include "collectives/executor.h"

namespace kolo {
namespace {

bool sends_segments(StepKind kind) {
  return kind == StepKind::kSend || kind == StepKind::kReceiveSend ||
         kind == StepKind::kReceiveReduceSend || kind == StepKind::kReceiveReduceCopySend ||
         kind == StepKind::kSendForAnswer;
}

bool receives_segments(StepKind kind) {
  return kind == StepKind::kReceive || kind == StepKind::kReceiveSend ||
         kind == StepKind::kReceiveReduce || kind == StepKind::kReceiveReduceSend ||
         kind == StepKind::kReceiveReduceCopySend || kind == StepKind::kReceiveReduceAnswer;
}

bool is_plain_receive(StepKind kind) {
  return kind == StepKind::kReceive || kind == StepKind::kReceiveSend ||
         kind == StepKind::kReceiveAnswer;
}

// Sends whose bytes leave from where the operand lies.
bool sends_from_memory(StepKind kind) {
  return kind == StepKind::kSend || kind == StepKind::kReceiveSend;
}

const Operand& sent_operand(const Step& step) {
  return step.kind == StepKind::kSend ? step.in : step.out;
}

bool is_same_data(const Step& one, const Step& other) {
  return one.chunk == other.chunk && one.slice == other.slice;
}

bool is_later(const Step& one, std::size_t one_index, const Step& other, std::size_t other_index) {
  return one.stage != other.stage ? one.stage > other.stage : one_index > other_index;
}

// The step whose segments `answered` (a kReceiveAnswer) reads back; it comes before.
std::size_t question_of(const Schedule& schedule, const Step& answered) {
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (step.kind == StepKind::kSendForAnswer && step.to == answered.to &&
        is_same_data(step, answered)) {
      return i;
    }
  }
  throw std::invalid_argument("a schedule reads an answer to what it never sends: " +
                              describe(schedule));
}

// Where `directions` has `channel`; added if absent.
template <typename Directions>
std::size_t index_of(Directions& directions, Channel* channel) {
  for (std::size_t i = 0; i < directions.size(); ++i) {
    if (directions[i].channel == channel) return i;
  }
  directions.emplace_back().channel = channel;
  return directions.size() - 1;
}

}  // namespace

std::size_t choose_segment_bytes(std::size_t chunk_bytes, std::size_t preferred) {
  constexpr std::size_t kTurns = 4;
  constexpr std::size_t kShortest = 8 * 1024;  // below that a turn costs more than it hides
  const std::size_t quarter = (chunk_bytes + kTurns - 1) / kTurns;
  const std::size_t wanted = std::clamp(quarter, std::min(kShortest, preferred), preferred);
  return (wanted + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

Executor::Executor(Schedule schedule, std::span<Channel* const> channels)
    : schedule_(std::move(schedule)) {
  compile(channels);
}

void Executor::compile(std::span<Channel* const> channels) {
  held_.assign(channels.size(), {});
  parts_.resize(static_cast<std::size_t>(schedule_.chunks));
  scratch_index_.assign(parts_.size(), 0);
  std::size_t scratches = 0;
  for (const Step& step : schedule_.steps) {
    for (const Operand& operand : {step.in, step.out}) {
      if (operand.place != Place::kScratch || scratch_index_[operand.chunk] != 0) continue;
      scratch_index_[operand.chunk] = 1 + scratches;
      scratches += static_cast<std::size_t>(schedule_.slices);
    }
  }
  scratches_ = scratches;
  lines_.reserve(schedule_.steps.size());
  for (std::size_t i = 0; i < schedule_.steps.size(); ++i) lines_.push_back(compile(i, channels));
}

Executor::Line Executor::compile(std::size_t index, std::span<Channel* const> channels) {
  const Step& step = schedule_.steps[index];
  Line line;
  line.kind = step.kind;
  line.stage = step.stage;
  line.slice = step.slice;
  line.is_final = step.is_final;
  line.is_held = step.is_held;
  line.chunk = step.chunk;
  line.in_operand = step.in;
  line.out_operand = step.out;
  line.must_copy = sends_from_memory(step.kind) && must_copy(index);
  if (step.to != kNobody) line.to = channels[static_cast<std::size_t>(step.to)];
  if (step.from != kNobody) {
    line.from = channels[static_cast<std::size_t>(step.from)];
    line.held = &held_[static_cast<std::size_t>(step.from)];
  }
  line.out_index = line.in_index = kNoDirection;
  if (sends_segments(step.kind)) line.out_index = index_of(out_, line.to);
  if (receives_segments(step.kind)) line.in_index = index_of(in_, line.from);
  if (step.kind == StepKind::kReceiveAnswer) {
    line.question = question_of(schedule_, step);
    line.out_index = lines_[line.question].out_index;
  }
  if (step.kind == StepKind::kReceiveSend && !line.must_copy) {
    const std::size_t zero_copy = std::min(line.to->capabilities().zero_copy_bytes,
                                           line.from->capabilities().zero_copy_bytes);
    line.is_direct = zero_copy <= line.to->capabilities().preferred_segment_bytes;
  }
  return line;
}

// True where memory that step `index` sends may be overwritten before it has left; see executor.h.
bool Executor::must_copy(std::size_t index) const {
  const Step& sending = schedule_.steps[index];
  const Operand& sent = sent_operand(sending);
  if (sent.place == Place::kScratch) return true;
  int ways_out = 0;
  bool is_overwritten = false;
  for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
    const Step& step = schedule_.steps[i];
    if (!is_same_data(step, sending)) continue;
    if (step.kind == StepKind::kSend) ++ways_out;
    if (i == index || step.out.place == Place::kNone || step.out.place == Place::kScratch) continue;
    if (!is_later(step, i, sending, index)) continue;
    if (step.kind == StepKind::kCopy) continue;  // of the same data: in place it changes nothing
    if (!is_plain_receive(step.kind)) return true;
    is_overwritten = true;
  }
  return is_overwritten && ways_out > 1;
}

void Executor::start(const Binding& binding) {
  const bool is_same_shape = is_measured_ && header_.count() == binding.header.count() &&
                             header_.type == binding.header.type &&
                             header_.segment_units == binding.header.segment_units;
  header_ = binding.header;
  kernel_ = reduce_kernel(header_.type, header_.op);
  divisor_ = header_.op == ReduceOp::kAverage ? schedule_.contributions : 1;
  update_ = binding.update != nullptr && *binding.update ? binding.update : nullptr;
  if (!is_same_shape) measure();
  const auto* in = static_cast<const std::byte*>(binding.in);
  auto* out = static_cast<std::byte*>(binding.out);
  for (Line& line : lines_) {
    line.in = resolve(line, line.in_operand, in, out);
    line.out = resolve(line, line.out_operand, in, out);
  }
  for (Direction& direction : out_) direction.is_open = false;
  for (Direction& direction : in_) direction.is_open = false;
  turn_ = step_ = 0;
  is_half_done_ = false;
}

void Executor::measure() {
  element_bytes_ = element_bytes(header_.type);
  segment_bytes_ = header_.segment_units * kSegmentAlignment;
  const std::size_t blocks = scratches_ * header_.segment_units;
  if (scratch_.size() < blocks) scratch_.resize(blocks);
  for (std::size_t c = 0; c < parts_.size(); ++c) {
    const int chunk = static_cast<int>(c);
    Part& part = parts_[c];
    part.begin = chunk_begin(header_.count(), schedule_.chunks, chunk) * element_bytes_;
    part.bytes = chunk_count(header_.count(), schedule_.chunks, chunk) * element_bytes_;
    part.segments = (part.bytes + segment_bytes_ - 1) / segment_bytes_;
  }
  const auto slices = static_cast<std::size_t>(schedule_.slices);
  turns_ = 0;
  for (Line& line : lines_) {
    const Part& part = parts_[line.chunk];
    line.bytes = part.bytes;
    line.segments = part.segments;
    line.in_stride = line.in_operand.place == Place::kScratch ? 0 : segment_bytes_;
    line.out_stride = line.out_operand.place == Place::kScratch ? 0 : segment_bytes_;
    if (part.segments == 0) continue;
    turns_ = std::max(turns_, line.stage + (part.segments + slices - 1) / slices);
  }
  find_opening(out_, &Line::out_index, &Line::opens_out);
  find_opening(in_, &Line::in_index, &Line::opens_in);
  for (Line& line : lines_) {
    if (line.kind == StepKind::kReceiveAnswer) line.opens_out = lines_[line.question].opens_out;
  }
  is_measured_ = true;
}

// Which line opens each channel: the first in time that has a segment at all.
void Executor::find_opening(std::vector<Direction>& directions, std::size_t Line::*index,
                            bool Line::*opens) {
  for (Line& line : lines_) line.*opens = false;
  for (std::size_t d = 0; d < directions.size(); ++d) {
    Line* first = nullptr;
    for (Line& line : lines_) {
      if (line.*index != d || line.segments <= line.slice) continue;
      if (line.kind == StepKind::kReceiveAnswer) continue;
      if (first == nullptr || line.stage < first->stage) first = &line;
    }
    directions[d].payload = 0;
    if (first == nullptr) continue;
    first->*opens = true;
    const std::size_t begin = first->slice * segment_bytes_;
    const std::size_t payload = std::min(first->bytes - begin, segment_bytes_);
    if (payload <= kOpeningPayload) directions[d].payload = payload;
  }
}

// Where an operand's segment 0 lies. The language reads from const memory and writes to the other;
// one pointer serves.
std::byte* Executor::resolve(const Line& line, const Operand& operand, const std::byte* in,
                             std::byte* out) {
  const std::size_t begin = parts_[operand.place == Place::kNone ? 0 : operand.chunk].begin;
  switch (operand.place) {
    case Place::kNone:
      return nullptr;
    case Place::kInput:
      return in == nullptr ? nullptr
                           : const_cast<std::byte*>(in) + (schedule_.input_chunk >= 0 ? 0 : begin);
    case Place::kOutput:
      return out == nullptr ? nullptr : out + (schedule_.output_chunk >= 0 ? 0 : begin);
    case Place::kScratch:
      return scratch_[(scratch_index_[operand.chunk] - 1 + line.slice) * header_.segment_units]
          .bytes;
  }
  return nullptr;
}

}  // namespace kolo
