#include "collectives/schedule/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "collectives/schedule/checker_state.h"
#include "collectives/schedule/turns.h"

namespace kolo::inline v0 {
namespace checking {
namespace {

enum class Outcome { kBlocked, kDone };

class World {
 public:
  World(std::span<const Schedule> program, const CheckOptions& options)
      : options_(options), size_(static_cast<int>(program.size())), queues_(program.size()) {
    if (program.empty() || size_ > kMostRanks) {
      throw std::invalid_argument(fmt::format("check takes 1 to {} ranks", kMostRanks));
    }
    report_.sent.resize(program.size());
    for (const Schedule& schedule : program) ranks_.push_back(make_rank(schedule, size_, options));
  }

  CheckReport run() {
    try {
      run_all();
      for (int rank = 0; rank < size_; ++rank) check_result(rank);
      check_leftovers();
    } catch (const Fault& fault) {
      report_.fault = fault.text;
    }
    return std::move(report_);
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  Rank& at(int rank) { return ranks_[index(rank)]; }
  Queue& queue(int from, int to) { return queues_.between(from, to); }

  // The contributions of a complete reduction at `rank`.
  Contributions complete_at(int rank) const {
    const Collective collective = ranks_[index(rank)].schedule->collective;
    Contributions all = everybody();
    if (collective != Collective::kScan && collective != Collective::kExclusiveScan) return all;
    const int end = collective == Collective::kScan ? rank + 1 : rank;
    for (int later = end; later < size_; ++later) all.reset(index(later));
    return all;
  }

  Contributions everybody() const {
    Contributions all;
    for (int rank = 0; rank < size_; ++rank) {
      if (!is_server(options_, rank)) all.set(index(rank));
    }
    return all;
  }

  // --- running ---

  void run_all() {
    bool is_moving = true;
    bool all_done = false;
    while (is_moving && !all_done) {
      is_moving = false;
      all_done = true;
      for (Rank& self : ranks_) {
        while (self.turn < self.turns && advance(self)) is_moving = true;
        all_done = all_done && self.turn >= self.turns;
      }
    }
    if (!all_done) throw Fault{describe_deadlock()};
  }

  // Runs the next step; false if it must wait.
  bool advance(Rank& self) {
    if (self.step == self.schedule->steps.size()) {
      end_turn(self);
      return true;
    }
    const Step& step = self.schedule->steps[self.step];
    if (self.turn >= step.stage) {
      const std::size_t segment =
          segment_in_turn(self.turn, step.stage, step.slice, self.schedule->slices);
      if (segment < segments_of(self, step.chunk, options_) &&
          run(self, step, segment) == Outcome::kBlocked) {
        return false;
      }
    }
    ++self.step;
    return true;
  }

  void end_turn(Rank& self) {
    for (int peer = 0; peer < size_; ++peer) {
      if (queue(peer, self.schedule->rank).held != 0) {
        throw Fault{fmt::format("rank {}: a segment from rank {} is held past the end of turn {}",
                                self.schedule->rank, peer, self.turn)};
      }
    }
    self.scratch.clear();
    self.step = 0;
    ++self.turn;
  }

  Outcome run(Rank& self, const Step& step, std::size_t segment) {
    switch (step.kind) {
      case StepKind::kSend:
      case StepKind::kSendForAnswer:
        return run_send(self, step, segment);
      case StepKind::kReduceSend:
        return run_reduce_send(self, step, segment);
      case StepKind::kReceiveAnswer:
        return run_receive_answer(self, step, segment);
      case StepKind::kAnswer:
        return run_answer(self, step, segment);
      case StepKind::kCopy:
      case StepKind::kReduce:
      case StepKind::kUpdate:
        return run_local(self, step, segment);
      default:
        return run_receive(self, step, segment);
    }
  }

  Outcome run_send(Rank& self, const Step& step, std::size_t segment) {
    if (!has_credit(self, step)) return Outcome::kBlocked;
    send(self, step, read(self, step, segment, options_), step.kind == StepKind::kSendForAnswer);
    if (step.in.place != Place::kScratch && !step.is_copied &&
        !sends_copies(*self.schedule, options_.is_in_place)) {
      remember_reader(self, step, step.in, segment);
    }
    return Outcome::kDone;
  }

  Outcome run_reduce_send(Rank& self, const Step& step, std::size_t segment) {
    if (!has_credit(self, step)) return Outcome::kBlocked;
    send(self, step, reduced_in_place(self, step, segment), false);
    return Outcome::kDone;
  }

  // All steps that begin with a segment from a peer. Each may reduce it, store it and pass it on.
  Outcome run_receive(Rank& self, const Step& step, std::size_t segment) {
    const bool passes_on = step.kind == StepKind::kReceiveSend ||
                           step.kind == StepKind::kReceiveReduceSend ||
                           step.kind == StepKind::kReceiveReduceCopySend;
    const bool reduces = step.kind != StepKind::kReceive && step.kind != StepKind::kReceiveSend;
    const bool answers = step.kind == StepKind::kReceiveReduceAnswer;
    Segment* incoming = peek(self, step);
    if (incoming == nullptr || (passes_on && !has_credit(self, step))) return Outcome::kBlocked;
    if (incoming->wants_answer != (answers || step.is_held)) {
      throw fault(self, step,
                  incoming->wants_answer ? "does not answer a segment sent for an answer"
                                         : "answers a segment that expects none");
    }
    receive(self, step);
    std::vector<Value> values = incoming->values;
    if (reduces) values = reduced(self, step, read(self, step, segment, options_), values);
    if (values.size() != length_of(self, step, segment, options_)) {
      throw fault(self, step,
                  fmt::format("expects {} elements and gets {}",
                              length_of(self, step, segment, options_), values.size()));
    }
    if (step.is_final) finish(self, step, values);
    if (step.out.place != Place::kNone) write(self, step, segment, values, options_, queues_);
    if (answers) {
      answer(self, *incoming, values);
    } else if (step.is_held) {
      queue(step.from, self.schedule->rank).held =
          queue(step.from, self.schedule->rank).next_receive - 1;
    } else {
      incoming->is_free = true;
    }
    if (passes_on) {
      send(self, step, values, false);
      if (step.kind == StepKind::kReceiveSend && step.out.place != Place::kNone)
        remember_reader(self, step, step.out, segment);
    }
    return Outcome::kDone;
  }

  Outcome run_answer(Rank& self, const Step& step, std::size_t segment) {
    Queue& channel = queue(step.from, self.schedule->rank);
    if (channel.held == 0) throw fault(self, step, "answers a segment that is not held");
    Segment& open = channel.segments[std::exchange(channel.held, 0)];
    ++self.clock[index(self.schedule->rank)];
    answer(self, open, read(self, step, segment, options_));
    return Outcome::kDone;
  }

  Outcome run_receive_answer(Rank& self, const Step& step, std::size_t segment) {
    Queue& mine = queue(self.schedule->rank, step.to);
    while (mine.next_answer < mine.segments.size() &&
           !mine.segments[mine.next_answer].wants_answer) {
      ++mine.next_answer;
    }
    if (mine.next_answer == mine.segments.size()) {
      throw fault(self, step, "waits for the answer to a segment that was never sent");
    }
    Segment& sent = mine.segments[mine.next_answer];
    if (!sent.is_answered) return Outcome::kBlocked;
    ++mine.next_answer;
    sent.is_free = true;
    join(self, sent.clock);
    if (sent.values.size() != length_of(self, step, segment, options_)) {
      throw fault(self, step, "gets an answer of a different length");
    }
    write(self, step, segment, sent.values, options_, queues_);
    return Outcome::kDone;
  }

  Outcome run_local(Rank& self, const Step& step, std::size_t segment) {
    if (step.kind == StepKind::kCopy && !step.is_final && is_onto_itself(self, step, segment)) {
      scale_in_place(self, step, segment);
      return Outcome::kDone;
    }
    std::vector<Value> values = read(self, step, segment, options_);
    if (step.kind == StepKind::kReduce) {
      values = reduced_in_place(self, step, segment);
    }
    if (step.is_final) finish(self, step, values);
    if (step.kind == StepKind::kUpdate) {
      for (Value& value : values) {
        if (!value.is_final) throw fault(self, step, "updates an incomplete sum");
        if (std::exchange(value.is_updated, true)) throw fault(self, step, "updates a sum twice");
      }
    }
    write(self, step, segment, values, options_, queues_);
    return Outcome::kDone;
  }

  // --- parts of steps ---

  // A copy onto itself does nothing, except in a scaled sum: it scales the input. Sends of a scaled
  // input are copies, so no reader of the cells is recorded.
  void scale_in_place(Rank& self, const Step& step, std::size_t segment) {
    if (step.in.place != Place::kInput) return;
    const std::vector<Value> values = read(self, step, segment, options_);
    const std::vector<Cell*> cells = cells_of(self, step, step.out, segment, options_);
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i]->value = values[i];
  }

  bool is_onto_itself(Rank& self, const Step& step, std::size_t segment) {
    return cells_of(self, step, step.in, segment, options_) ==
           cells_of(self, step, step.out, segment, options_);
  }

  static void free_in_order(Queue& channel) {
    while (channel.freed < channel.segments.size() && channel.segments[channel.freed].is_free) {
      ++channel.freed;
    }
  }

  bool has_credit(Rank& self, const Step& step) {
    Queue& channel = queue(self.schedule->rank, step.to);
    free_in_order(channel);
    const std::size_t wanted = channel.segments.empty() ? 2 : 1;  // with the header
    return channel.segments.size() - channel.freed + wanted <=
           static_cast<std::size_t>(options_.credit);
  }

  void send(Rank& self, const Step& step, std::vector<Value> values, bool wants_answer) {
    const int rank = self.schedule->rank;
    Queue& channel = queue(rank, step.to);
    if (channel.segments.empty()) {
      channel.segments.emplace_back();
      channel.segments.back().is_header = true;
    }
    ++self.clock[index(rank)];
    Segment segment;
    segment.wants_answer = wants_answer;
    if (self.schedule->collective == Collective::kBarrier) {
      for (Value& value : values) value.from = self.arrived;
    }
    report_.sent[index(rank)] += values.size();
    segment.values = std::move(values);
    segment.clock = self.clock;
    channel.segments.push_back(std::move(segment));
    report_.most_in_flight =
        std::max(report_.most_in_flight, static_cast<int>(channel.segments.size() - channel.freed));
  }

  void remember_reader(Rank& self, const Step& step, Operand operand, std::size_t segment) {
    const std::size_t sent = queue(self.schedule->rank, step.to).segments.size() - 1;
    for (Cell* cell : cells_of(self, step, operand, segment, options_))
      cell->readers.push_back({step.to, sent});
  }

  // The next segment from the step's peer, after the header; null if there is none.
  Segment* peek(Rank& self, const Step& step) {
    Queue& channel = queue(step.from, self.schedule->rank);
    if (channel.next_receive == 0 && !channel.segments.empty()) {
      channel.segments[0].is_free = true;
      channel.next_receive = 1;
    }
    if (channel.next_receive >= channel.segments.size()) return nullptr;
    return &channel.segments[channel.next_receive];
  }

  void receive(Rank& self, const Step& step) {
    Queue& channel = queue(step.from, self.schedule->rank);
    Segment& segment = channel.segments[channel.next_receive++];
    join(self, segment.clock);
    segment.receipt_time = ++self.clock[index(self.schedule->rank)];
    if (self.schedule->collective == Collective::kBarrier) {
      for (const Value& value : segment.values) self.arrived |= value.from;
    }
  }

  void answer(Rank& self, Segment& segment, std::vector<Value> values) {
    report_.sent[index(self.schedule->rank)] += values.size();
    segment.values = std::move(values);
    segment.clock = self.clock;
    segment.is_answered = true;
  }

  static void join(Rank& self, const std::vector<std::uint32_t>& clock) {
    for (std::size_t i = 0; i < clock.size(); ++i)
      self.clock[i] = std::max(self.clock[i], clock[i]);
  }

  std::vector<Value> reduced(Rank& self, const Step& step, std::vector<Value> local,
                             const std::vector<Value>& incoming) {
    if (local.size() != incoming.size()) {
      throw fault(self, step,
                  fmt::format("reduces {} elements with {}", local.size(), incoming.size()));
    }
    for (std::size_t i = 0; i < local.size(); ++i) {
      if (!(local[i].element == incoming[i].element)) {
        throw fault(self, step,
                    fmt::format("reduces element {} with element {}", to_string(local[i].element),
                                to_string(incoming[i].element)));
      }
      if ((local[i].from & incoming[i].from).any()) {
        throw fault(self, step, "counts a contribution twice");
      }
      if (local[i].is_final || incoming[i].is_final) {
        throw fault(self, step, "adds to a sum that was declared complete");
      }
      const Value& left = step.is_in_last ? incoming[i] : local[i];
      const Value& right = step.is_in_last ? local[i] : incoming[i];
      note_order(self, step, left, right);
      const std::uint64_t order = order_of(left.order, right.order);
      local[i].from |= incoming[i].from;
      local[i].order = order;
      local[i].first_rank = std::min(local[i].first_rank, incoming[i].first_rank);
      local[i].last_rank = std::max(local[i].last_rank, incoming[i].last_rank);
    }
    return local;
  }

  void note_order(const Rank& self, const Step& step, const Value& left, const Value& right) {
    if (left.last_rank > right.first_rank && report_.disorder.empty()) {
      report_.disorder = fault(self, step, "combines operands out of the order of the ranks").text;
    }
    if (right.first_rank != right.last_rank && report_.regrouping.empty()) {
      report_.regrouping = fault(self, step, "has several ranks' sum as its right operand").text;
    }
  }

  // in op out
  std::vector<Value> reduced_in_place(Rank& self, const Step& step, std::size_t segment) {
    Step other = step;
    other.in = step.out;
    return reduced(self, step, read(self, step, segment, options_),
                   read(self, other, segment, options_));
  }

  void finish(Rank& self, const Step& step, std::vector<Value>& values) {
    for (Value& value : values) {
      if (value.from != complete_at(self.schedule->rank)) {
        throw fault(self, step, "declares an incomplete sum complete");
      }
      value.is_final = true;
    }
  }

  // --- the end ---

  void check_result(int rank) {
    Rank& self = at(rank);
    if (self.schedule->collective == Collective::kBarrier) {
      if (self.arrived != everybody()) {
        throw Fault{fmt::format("rank {} leaves the barrier before all ranks have entered", rank)};
      }
      return;
    }
    const ChunkRange& held = self.schedule->output;
    for (int chunk = held.first; chunk < held.first + held.count; ++chunk) {
      const std::size_t begin = self.output_base + self.layout.begin(chunk);
      for (std::size_t offset = 0; offset < self.layout.length(chunk); ++offset) {
        const Value& value = self.cells[begin + offset].value;
        check_element(rank, {chunk, offset}, value);
        check_bits(rank, {chunk, offset}, self.layout.begin(chunk) + offset, value);
      }
    }
  }

  void check_element(int rank, const Element& at_rank, const Value& value) {
    const Schedule& schedule = *at(rank).schedule;
    const bool reduces = is_reduction(schedule.collective);
    const bool is_scan = schedule.collective == Collective::kScan ||
                         schedule.collective == Collective::kExclusiveScan;  // never an average
    const Contributions expected = reduces ? complete_at(rank) : only(source_of(rank, at_rank));
    Element element = at_rank;
    if (schedule.collective == Collective::kAllToAll)
      element.chunk = rank;  // number of the chunk at its sender
    const char* wrong = !value.is_defined                          ? "was never written"
                        : !(value.element == element)              ? "holds a different element"
                        : value.from != expected                   ? "has the wrong contributions"
                        : reduces && !is_scan && !value.is_final   ? "was never declared complete"
                        : reduces && !value.is_scaled              ? "was never scaled"
                        : options_.has_update && !value.is_updated ? "was not updated"
                                                                   : nullptr;
    if (wrong != nullptr) {
      throw Fault{fmt::format("rank {}: output element {} {} (contributions: {} of {})", rank,
                              to_string(at_rank), wrong, value.from.count(), expected.count())};
    }
  }

  // All ranks that hold an element must have combined it in the same order.
  void check_bits(int rank, const Element& element, std::size_t index, const Value& value) {
    const Collective collective = at(rank).schedule->collective;
    if (collective != Collective::kAllReduce && collective != Collective::kPushPull) return;
    if (orders_.size() <= index) orders_.resize(index + 1);
    if (orders_[index] == 0) orders_[index] = value.order;
    if (orders_[index] == value.order) return;
    throw Fault{fmt::format(
        "rank {}: output element {} was combined in a different order than on an earlier "
        "rank, and may have other bits",
        rank, to_string(element))};
  }

  static Contributions only(int rank) {
    Contributions one;
    one.set(index(rank));
    return one;
  }

  // The rank whose data an output element of `rank` is, in collectives that do not reduce.
  int source_of(int rank, const Element& element) const {
    switch (ranks_[index(rank)].schedule->collective) {
      case Collective::kBroadcast:
      case Collective::kScatter:
      case Collective::kMessage:
        return options_.root;
      case Collective::kAllToAll:
        return element.chunk - size_;
      case Collective::kPull:
        return giver_of(ranks_, element.chunk);
      default:
        return element.chunk;  // gather, all_gather: its owner
    }
  }

  void check_leftovers() {
    for (int from = 0; from < size_; ++from) {
      for (int to = 0; to < size_; ++to) {
        Queue& channel = queue(from, to);
        free_in_order(channel);
        if (channel.freed != channel.segments.size()) {
          throw Fault{fmt::format("{} segments from rank {} to rank {} are left over",
                                  channel.segments.size() - channel.freed, from, to)};
        }
      }
    }
  }

  std::string describe_deadlock() const {
    std::string text = fmt::format("deadlock with a credit of {} segments:", options_.credit);
    for (const Rank& self : ranks_) {
      if (self.turn >= self.turns) continue;
      const Step& step = self.schedule->steps[self.step];
      text += fmt::format(" rank {} at turn {} step {} ({}, from {}, to {});", self.schedule->rank,
                          self.turn, self.step, to_string(step.kind), step.from, step.to);
    }
    return text;
  }

  const CheckOptions& options_;
  int size_;
  std::vector<Rank> ranks_;
  Queues queues_;
  std::vector<std::uint64_t> orders_;  // by element, if all ranks hold it; 0: not seen yet
  CheckReport report_;
};

}  // namespace
}  // namespace checking

CheckReport check(std::span<const Schedule> program, const CheckOptions& options) {
  return checking::World(program, options).run();
}

}  // namespace kolo::inline v0
