// Compiles a schedule into the executor's table of lines. The first part runs once per schedule,
// the second again when the lengths change.
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "collectives/executor/executor.h"
#include "collectives/executor/recorder.h"
#include "collectives/schedule/buffer_reuse.h"
#include "collectives/schedule/coalesced_order.h"
#include "transports/base/preposted_receives.h"

namespace kolo::inline v0 {
namespace {

bool is_same_data(const Step& one, const Step& other) {
  return one.chunk == other.chunk && one.slice == other.slice;
}

// True if a slice of a chunk is touched only by this kSendForAnswer, its kReceiveAnswer, and copies
// from input to output. The peer may then write its answer into the sent memory.
bool may_lend(const Schedule& schedule, const Step& asking) {
  if (asking.kind != StepKind::kSendForAnswer || asking.in.place == Place::kScratch) return false;
  if (schedule.spans > 1 || schedule.input.first != schedule.output.first) return false;
  return std::all_of(schedule.steps.begin(), schedule.steps.end(), [&](const Step& step) {
    if (!is_same_data(step, asking)) return true;
    if (&step == &asking || step.kind == StepKind::kReceiveAnswer) return true;
    return step.kind == StepKind::kCopy && step.in.place == Place::kInput &&
           step.out.place == Place::kOutput;
  });
}

// Index of the kSendForAnswer whose segments `answered` (a kReceiveAnswer) reads back.
// `likely` is tried first, which avoids the search if a chunk has only one.
std::size_t question_of(const Schedule& schedule, const Step& answered, std::size_t likely) {
  const auto asks = [&](const Step& step) {
    return step.kind == StepKind::kSendForAnswer && step.to == answered.to &&
           is_same_data(step, answered);
  };
  if (asks(schedule.steps[likely])) return likely;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    if (asks(schedule.steps[i])) return i;
  }
  throw std::invalid_argument("a schedule reads an answer to a segment that it never sends: " +
                              describe(schedule));
}

// Index of the channel to `peer` in `directions`; added if absent. `known`: indices by rank.
template <typename Directions>
std::size_t index_of(Directions& directions, std::vector<std::size_t>& known, int peer,
                     Channel* channel) {
  std::size_t& index = known[static_cast<std::size_t>(peer)];
  if (index > directions.size()) {
    index = directions.size();
    directions.emplace_back().channel = channel;
  }
  return index;
}

}  // namespace

std::size_t choose_segment_bytes(std::size_t chunk_bytes, std::size_t preferred,
                                 std::size_t shortest) {
  constexpr std::size_t kTurns = 4;
  const std::size_t quarter = (chunk_bytes + kTurns - 1) / kTurns;
  const std::size_t wanted = std::clamp(quarter, std::min(shortest, preferred), preferred);
  return (wanted + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

Executor::Executor(Schedule schedule, std::span<Channel* const> channels, std::size_t cache_bytes,
                   bool sends_header_alone, std::pmr::memory_resource* memory)
    : schedule_(std::move(schedule)),
      cache_bytes_(cache_bytes),
      sends_header_alone_(sends_header_alone),
      scratch_(memory) {
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
  std::vector<std::size_t> outs(channels.size(), kNoDirection);
  std::vector<std::size_t> ins(channels.size(), kNoDirection);
  const std::vector<bool> copies = sends_needing_copies(schedule_);
  // The last kSendForAnswer, by slice of a chunk.
  std::vector<std::size_t> asked(parts_.size() * static_cast<std::size_t>(schedule_.slices), 0);
  for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
    const Step& step = schedule_.steps[i];
    Line line = compile(step, channels);
    const auto data = static_cast<std::size_t>(step.chunk * schedule_.slices + step.slice);
    line.must_copy = copies[i];
    line.may_lend = may_lend(schedule_, step);
    if (step.kind == StepKind::kSendForAnswer) asked[data] = i;
    if (sends_segment(step.kind)) line.out_index = index_of(out_, outs, step.to, line.to);
    if (receives_segment(step.kind)) line.in_index = index_of(in_, ins, step.from, line.from);
    if (step.kind != StepKind::kSend && sends_from_memory(step) && !line.must_copy) {
      const std::size_t zero_copy = std::min(line.to->capabilities().zero_copy_bytes,
                                             line.from->capabilities().zero_copy_bytes);
      line.is_direct = zero_copy <= line.to->capabilities().preferred_segment_bytes;
    }
    lines_.push_back(line);
  }
  // In the list the answer may stand before the question: it belongs to an earlier turn then.
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const Step& step = schedule_.steps[i];
    if (step.kind != StepKind::kReceiveAnswer) continue;
    const auto data = static_cast<std::size_t>(step.chunk * schedule_.slices + step.slice);
    lines_[i].question = question_of(schedule_, step, asked[data]);
    lines_[i].out_index = lines_[lines_[i].question].out_index;
  }
  find_uncached();
  int credit = std::numeric_limits<int>::max();
  for (const Direction& out : out_) {
    credit = std::min(credit, out.channel->capabilities().credit_segments);
  }
  coalesced_order_ = coalesced_order(schedule_, credit);
  for (Direction& in : in_) {
    in.expecting = dynamic_cast<PrepostedReceives*>(in.channel);
    has_posting_channels_ |= in.expecting != nullptr;
  }
}

// Fills in what follows from the step alone.
Executor::Line Executor::compile(const Step& step, std::span<Channel* const> channels) {
  Line line;
  line.kind = step.kind;
  line.stage = step.stage;
  line.slice = step.slice;
  line.is_final = step.is_final;
  line.is_held = step.is_held;
  line.chunk = step.chunk;
  line.in_operand = step.in;
  line.out_operand = step.out;
  line.is_in_last = step.is_in_last;
  line.reads_input = step.in.place == Place::kInput;
  if (step.to != kNobody) line.to = channels[static_cast<std::size_t>(step.to)];
  if (step.from != kNobody) {
    line.from = channels[static_cast<std::size_t>(step.from)];
    line.held = &held_[static_cast<std::size_t>(step.from)];
  }
  line.out_index = line.in_index = kNoDirection;
  return line;
}

void Executor::start(const Binding& binding) {
  const bool is_even = binding.lengths.empty();
  const bool is_same_shape = is_even && is_measured_ && header_.count() == binding.header.count() &&
                             header_.type == binding.header.type &&
                             header_.is_user() == binding.header.is_user() &&
                             header_.segment_units == binding.header.segment_units;
  header_ = binding.header;
  kernel_ = reduce_kernel(header_.type, header_.op);
  reducer_ = binding.reducer;
  scale_ = binding.scale;
  multiply_ = scale_ == 1 ? nullptr : multiply_kernel(header_.type);
  divisor_ = header_.op == ReduceOp::kAverage ? schedule_.contributions : 1;
  update_ = binding.update != nullptr && *binding.update ? binding.update : nullptr;
  has_own_lengths_ = binding.has_own_lengths;
  send_flags_ = is_reduction(schedule_.collective) ? kPlain : kReceived;
  if (!is_same_shape) {
    if (is_even) {
      layout_.split(header_.count(), schedule_.chunks, schedule_.spans);
    } else {
      layout_.assign(binding.lengths);
    }
    measure();
    is_measured_ = is_even;
    is_short_message_ = schedule_.collective == Collective::kMessage && fits_into_slots();
  }
  places_[static_cast<std::size_t>(Place::kScratch)] =
      scratch_.empty() ? nullptr : scratch_.front().bytes;
  is_plain_ = is_even && reducer_ == nullptr && multiply_ == nullptr && update_ == nullptr &&
              !has_own_lengths_ && binding.recorder == nullptr;
  is_single_segment_ = is_plain_ && !actions_.empty();
  begin(binding.in, binding.out);
  recorder_ = binding.recorder;
  if (recorder_ != nullptr) {
    first_tried_ = {};
    recorded_ = recorder_->begin_operation(header_, schedule_.algorithm, track());
  }
}

// True if all segments fit into slots, with one left for the header.
bool Executor::fits_into_slots() const {
  return std::all_of(lines_.begin(), lines_.end(), [](const Line& line) {
    if (line.kind != StepKind::kSend) return true;
    const Capabilities& channel = line.to->capabilities();
    return channel.can_answer && line.segments < static_cast<std::size_t>(channel.credit_segments);
  });
}

void Executor::measure() {
  element_bytes_ = header_.bytes_of_element();
  segment_bytes_ = header_.segment_bytes();
  const std::size_t blocks = scratches_ * header_.units();
  if (scratch_.size() < blocks) scratch_.resize(blocks);
  for (std::size_t c = 0; c < parts_.size(); ++c) {
    const int chunk = static_cast<int>(c);
    Part& part = parts_[c];
    part.begin = layout_.begin(chunk) * element_bytes_;
    part.bytes = layout_.length(chunk) * element_bytes_;
    part.segments = segments_in(part.bytes, segment_bytes_);
  }
  in_bytes_ = bytes_of(schedule_.input);
  out_bytes_ = bytes_of(schedule_.output);
  measure_lines();
  find_opening(out_, &Line::out_index, &Line::opens_out);
  find_opening(in_, &Line::in_index, &Line::opens_in);
  for (Line& line : lines_) {
    if (line.kind == StepKind::kReceiveAnswer) line.opens_out = lines_[line.question].opens_out;
  }
  find_actions();
}

void Executor::measure_lines() {
  for (Direction& direction : out_) direction.elements = 0;
  for (Direction& direction : in_) direction.elements = 0;
  turns_ = 0;
  for (Line& line : lines_) {
    const Part& part = parts_[line.chunk];
    line.bytes = part.bytes;
    line.segments = part.segments;
    line.in_begin = begin_of(line, line.in_operand);
    line.out_begin = begin_of(line, line.out_operand);
    line.in_stride = line.in_operand.place == Place::kScratch ? 0 : segment_bytes_;
    line.out_stride = line.out_operand.place == Place::kScratch ? 0 : segment_bytes_;
    if (part.segments == 0) continue;
    turns_ =
        std::max(turns_, turns_until_end(part.segments, line.stage, line.slice, schedule_.slices));
    // With own lengths there is one slice, so a line streams its whole chunk.
    if (line.out_index != kNoDirection) out_[line.out_index].elements += layout_.length(line.chunk);
    if (line.in_index != kNoDirection) in_[line.in_index].elements += layout_.length(line.chunk);
  }
}

// Finds the line that opens each channel: the first in time that has a segment.
void Executor::find_opening(std::vector<Direction>& directions, std::size_t Line::*index,
                            bool Line::*opens) {
  for (Direction& direction : directions) {
    direction.first = nullptr;
    direction.payload = 0;
  }
  for (Line& line : lines_) {
    line.*opens = false;
    if (line.*index == kNoDirection || line.segments <= line.slice) continue;
    if (line.kind == StepKind::kReceiveAnswer) continue;
    Line*& first = directions[line.*index].first;
    if (first == nullptr || line.stage < first->stage) first = &line;
  }
  for (Direction& direction : directions) {
    if (direction.first == nullptr) continue;
    direction.first->*opens = true;
    const std::size_t begin = direction.first->slice * segment_bytes_;
    const std::size_t payload = std::min(direction.first->bytes - begin, segment_bytes_);
    if (payload <= kInlinePayloadBytes && !sends_header_alone_) direction.payload = payload;
  }
}

std::size_t Executor::begin_of(const ChunkRange& held) const {
  return layout_.begin(held.first) * element_bytes_;
}

std::size_t Executor::bytes_of(const ChunkRange& held) const {
  return begin_of({held.first + held.count, 0}) - begin_of(held);
}

// Offset of the operand's segment 0 in its place.
std::size_t Executor::begin_of(const Line& line, const Operand& operand) const {
  switch (operand.place) {
    case Place::kNone:
      return 0;
    case Place::kInput:
      return parts_[operand.chunk].begin - begin_of(schedule_.input);
    case Place::kOutput:
      return parts_[operand.chunk].begin - begin_of(schedule_.output);
    case Place::kScratch:
      return (scratch_index_[operand.chunk] - 1 + line.slice) * header_.units() * kSegmentAlignment;
  }
  return 0;
}

}  // namespace kolo::inline v0
