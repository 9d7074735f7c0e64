#include "collectives/schedule/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "collectives/schedule/coalesced_order.h"
#include "collectives/schedule/turns.h"

namespace kolo::inline v0 {
namespace {

// A segment in flight.
struct Parcel {
  double arrived_us = 0;
  bool is_next = false;  // it travels with the segment before
};

// FIFO that allocates at first use, since most lanes are never used.
template <typename T>
class Queue {
 public:
  bool empty() const { return first_ == items_.size(); }
  const T& front() const { return items_[first_]; }
  void push_back(const T& item) { items_.push_back(item); }
  void pop_front() {
    if (++first_ < items_.size()) return;
    items_.clear();
    first_ = 0;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
};

// One direction of a channel.
struct Lane {
  Queue<Parcel> parcels;           // sent, not yet received
  Queue<double> credits;           // when each returned credit arrives
  Queue<double> answers;           // when each answer arrives
  int unreturned = 0;              // segments that the receiver has not released
  std::vector<Passage> held_back;  // they are sent with the next segment
};

struct Player {
  const Schedule* schedule = nullptr;
  std::vector<std::size_t> order;  // of the steps, in a single-segment operation
  std::size_t turns = 0;
  std::size_t turn = 0;
  std::size_t step = 0;
  int host = 0;
  double now_us = 0;
  double busy_us = 0;
};

// A core of a host with more ranks than cores. Its ranks take turns: a blocked rank yields to the
// next, which may have to yield too. A rank that is done still takes its turn: it does other work,
// or waits for its next operation.
struct Core {
  double now_us = 0;
  std::vector<Player*> ranks;
  std::size_t holder = 0;  // index of the rank that ran last
};

// The next step to simulate.
struct Turn {
  Core* core = nullptr;
  std::size_t place = 0;
  double begin_us = 0;
};

bool reduces(StepKind kind) {
  return kind == StepKind::kReceiveReduce || kind == StepKind::kReceiveReduceSend ||
         kind == StepKind::kReceiveReduceCopySend || kind == StepKind::kReceiveReduceAnswer ||
         kind == StepKind::kReduce || kind == StepKind::kReduceSend;
}

// The core of a host's rank `place`. Each row of as many ranks as cores uses every core once, in a
// varying order: the sum of the digits of `place` (Thue-Morse for two cores). In blocks or
// round-robin, all inner nodes of some trees would share one core.
std::size_t core_of(std::size_t place, std::size_t cores) {
  if (cores == 1) return 0;
  std::size_t sum = 0;
  for (; place > 0; place /= cores) sum += place % cores;
  return sum % cores;
}

class Stage {
 public:
  Stage(std::span<const Schedule> program, const Costs& costs, const SimulationOptions& options)
      : costs_(costs), options_(options), lanes_(program.size() * program.size()) {
    for (const Schedule& schedule : program) {
      Player player;
      player.schedule = &schedule;
      if (!options.hosts.empty()) {
        player.host = options.hosts[static_cast<std::size_t>(schedule.rank)];
      }
      players_.push_back(player);
    }
    if (program.empty()) return;
    share_cores();
    layout_.split(options.count, program[0].chunks, program[0].spans);
    count_segments();
    is_single_segment_ =
        std::ranges::all_of(segments_, [](std::size_t count) { return count <= 1; });
    for (Player& player : players_) {
      player.turns = turns_of(*player.schedule);
      if (!is_single_segment_) continue;
      player.order = coalesced_order(*player.schedule, options.credit);
      std::erase_if(player.order, [&](std::size_t step) {
        return segments_of(player.schedule->steps[step].chunk) == 0;
      });
      player.turns = 1;
    }
  }

  Simulation play() {
    if (cores_.empty()) {
      play_freely();
    } else {
      play_on_cores();
    }
    for (const Player& player : players_) {
      if (player.turn < player.turns) {
        throw std::invalid_argument(fmt::format("rank {} never ends: {}", player.schedule->rank,
                                                describe(*player.schedule)));
      }
      result_.rank_us.push_back(player.now_us);
      result_.busy_us.push_back(player.busy_us);
      result_.total_us = std::max(result_.total_us, player.now_us);
    }
    return std::move(result_);
  }

 private:
  // Makes cores if a host has more ranks than cores; otherwise none.
  void share_cores() {
    if (costs_.cores <= 0) return;
    std::vector<int> ranks;
    for (const Player& player : players_) {
      ranks.resize(std::max(ranks.size(), static_cast<std::size_t>(player.host) + 1));
      ++ranks[static_cast<std::size_t>(player.host)];
    }
    if (*std::ranges::max_element(ranks) <= costs_.cores) return;
    const auto cores = static_cast<std::size_t>(costs_.cores);
    cores_.resize(ranks.size() * cores);
    std::vector<std::size_t> seated(ranks.size());
    for (Player& player : players_) {
      const auto host = static_cast<std::size_t>(player.host);
      cores_[host * cores + core_of(seated[host]++, cores)].ranks.push_back(&player);
    }
  }

  void play_freely() {
    bool is_moving = true;
    while (is_moving) {
      is_moving = false;
      for (Player& player : players_) {
        while (player.turn < player.turns && skip_to_work(player)) {
          const double begin = ready_at(player);
          if (begin < 0) break;
          perform(player, begin);
          is_moving = true;
        }
      }
    }
  }

  // Always simulates the step that begins first: its effects come later than its own begin.
  void play_on_cores() {
    while (true) {
      Turn first;
      for (Core& core : cores_) consider(core, first);
      if (first.core == nullptr) return;
      Player& player = *first.core->ranks[first.place];
      perform(player, first.begin_us);
      first.core->now_us = player.now_us;
      first.core->holder = first.place;
    }
  }

  void consider(Core& core, Turn& first) {
    for (std::size_t place = 0; place < core.ranks.size(); ++place) {
      Player& player = *core.ranks[place];
      if (player.turn == player.turns || !skip_to_work(player)) continue;
      const double ready = ready_at(player);
      if (ready < 0) continue;
      const double begin = turn_at(core, place, ready);
      if (first.core == nullptr || begin < first.begin_us) first = {&core, place, begin};
    }
  }

  // When the rank at `place`, ready at `ready`, gets the core.
  double turn_at(const Core& core, std::size_t place, double ready) const {
    const std::size_t ranks = core.ranks.size();
    const bool has_core = place == core.holder;
    if (costs_.switch_us <= 0 || (has_core && (ready <= core.now_us || ranks == 1))) {
      return std::max(core.now_us, ready);
    }
    const double cycle = static_cast<double>(ranks) * costs_.switch_us;
    const std::size_t before_it = (place + ranks - core.holder - 1) % ranks;
    const double next = core.now_us + static_cast<double>(before_it + 1) * costs_.switch_us;
    return ready <= next ? next : next + std::ceil((ready - next) / cycle) * cycle;
  }

  const Link& link(const Player& player, int peer) const {
    const int host = players_[static_cast<std::size_t>(peer)].host;
    return host == player.host ? costs_.local : costs_.remote;
  }

  Lane& lane(int from, int to) {
    return lanes_[static_cast<std::size_t>(from) * players_.size() + static_cast<std::size_t>(to)];
  }

  std::size_t bytes_of(int chunk) const { return layout_.length(chunk) * options_.element_bytes; }

  std::size_t segments_of(int chunk) const { return segments_[static_cast<std::size_t>(chunk)]; }

  void count_segments() {
    for (int chunk = 0; chunk < layout_.chunks(); ++chunk) {
      segments_.push_back(segments_in(bytes_of(chunk), options_.segment_bytes));
    }
  }

  std::size_t turns_of(const Schedule& schedule) const {
    std::size_t turns = 0;
    for (const Step& step : schedule.steps) {
      turns = std::max(
          turns, turns_until_end(segments_of(step.chunk), step.stage, step.slice, schedule.slices));
    }
    return turns;
  }

  const Step& step_of(const Player& player) const {
    return player.schedule->steps[is_single_segment_ ? player.order[player.step] : player.step];
  }

  // True if the step's segment travels with the player's next one, and there is credit for both.
  bool goes_with_next(const Player& player) {
    if (!is_single_segment_ || player.step + 1 == player.order.size()) return false;
    const Step& step = step_of(player);
    return is_coalesced_with_next(step, player.schedule->steps[player.order[player.step + 1]]) &&
           lane(player.schedule->rank, step.to).unreturned + 1 < options_.credit;
  }

  // Moves to the next step with a segment; false at the end.
  bool skip_to_work(Player& player) const {
    if (is_single_segment_) {
      if (player.step == player.order.size()) player.turn = player.turns;
      return player.turn < player.turns;
    }
    for (; player.turn < player.turns; ++player.turn, player.step = 0) {
      for (; player.step < player.schedule->steps.size(); ++player.step) {
        const Step& step = player.schedule->steps[player.step];
        if (player.turn >= step.stage && segment_of(player, step) < segments_of(step.chunk)) {
          return true;
        }
      }
    }
    return false;
  }

  std::size_t segment_of(const Player& player, const Step& step) const {
    if (is_single_segment_) return 0;
    return segment_in_turn(player.turn, step.stage, step.slice, player.schedule->slices);
  }

  // When there is credit for one more segment; below 0: not known yet.
  double credit_at(Lane& out) const {
    if (out.unreturned < options_.credit) return 0;
    return out.credits.empty() ? -1 : out.credits.front();
  }

  // When the current step can begin; below 0: not known yet.
  double ready_at(const Player& player) {
    const Step& step = step_of(player);
    const int rank = player.schedule->rank;
    double ready = player.now_us;
    if (receives_segment(step.kind)) {
      const Lane& in = lane(step.from, rank);
      if (in.parcels.empty()) return -1;
      ready = std::max(ready, in.parcels.front().arrived_us);
    }
    if (step.kind == StepKind::kReceiveAnswer) {
      const Lane& asked = lane(rank, step.to);
      if (asked.answers.empty()) return -1;
      ready = std::max(ready, asked.answers.front());
    }
    if (sends_segment(step.kind)) {
      const double credit = credit_at(lane(rank, step.to));
      if (credit < 0) return -1;
      ready = std::max(ready, credit);
    }
    return ready;
  }

  double duration(const Player& player, const Step& step, std::size_t bytes, bool goes_along) {
    const bool takes = receives_segment(step.kind) || step.kind == StepKind::kReceiveAnswer;
    double fixed = costs_.overhead_us;
    double per_byte = reduces(step.kind) ? costs_.reduce_us_per_byte : costs_.copy_us_per_byte;
    if (takes) {
      const Link& in = link(player, step.kind == StepKind::kReceiveAnswer ? step.to : step.from);
      const bool is_next = receives_segment(step.kind) &&
                           lane(step.from, player.schedule->rank).parcels.front().is_next;
      fixed += is_next ? in.next_us : in.receive_us;
      per_byte += in.receive_us_per_byte;
    }
    if (sends_segment(step.kind)) {
      const Link& out = link(player, step.to);
      fixed += goes_along ? out.next_us : out.send_us;
      per_byte += out.send_us_per_byte;
    }
    return fixed + per_byte * static_cast<double>(bytes);
  }

  // Simulates the current step.
  void perform(Player& player, double begin) {
    const Step& step = step_of(player);
    const std::size_t segment = segment_of(player, step);
    const std::size_t bytes =
        std::min(options_.segment_bytes, bytes_of(step.chunk) - segment * options_.segment_bytes);
    const bool goes_along = goes_with_next(player);
    const double end = begin + duration(player, step, bytes, goes_along);
    const int rank = player.schedule->rank;
    player.busy_us += end - begin;
    player.now_us = end;
    if (receives_segment(step.kind)) take(player, step, end);
    if (sends_segment(step.kind)) give(player, step, end, goes_along);
    if (step.kind == StepKind::kAnswer) answer(player, step, end);
    if (step.kind == StepKind::kReceiveAnswer) take_answer(lane(rank, step.to), end);
    if (options_.keeps_events) {
      const std::size_t number = is_single_segment_ ? player.order[player.step] : player.step;
      result_.events.push_back({rank, static_cast<int>(number), segment, bytes, begin, end});
    }
    ++player.step;
  }

  void take(const Player& player, const Step& step, double now) {
    Lane& in = lane(step.from, player.schedule->rank);
    in.parcels.pop_front();
    if (step.kind == StepKind::kReceiveReduceAnswer) {
      answer(player, step, now);
    } else if (!step.is_held) {
      in.credits.push_back(now + link(player, step.from).latency_us);
    }
  }

  void give(const Player& player, const Step& step, double now, bool goes_along) {
    const int rank = player.schedule->rank;
    Lane& out = lane(rank, step.to);
    if (out.unreturned >= options_.credit) {
      out.credits.pop_front();
      --out.unreturned;
    }
    ++out.unreturned;
    out.held_back.push_back({rank, step.to, step.chunk, now, 0, false});
    if (goes_along) return;
    const double arrived = now + link(player, step.to).latency_us;
    bool is_next = false;
    for (Passage& passage : out.held_back) {
      passage.arrived_us = arrived;
      out.parcels.push_back({arrived, is_next});
      note(passage);
      is_next = true;
    }
    out.held_back.clear();
  }

  // The segment travels back to its sender.
  void answer(const Player& player, const Step& step, double now) {
    const int rank = player.schedule->rank;
    const double arrived = now + link(player, step.from).latency_us;
    lane(step.from, rank).answers.push_back(arrived);
    note({rank, step.from, step.chunk, now, arrived, true});
  }

  void take_answer(Lane& asked, double now) {
    asked.answers.pop_front();
    asked.credits.push_back(now);
  }

  void note(const Passage& passage) {
    if (options_.keeps_events) result_.passages.push_back(passage);
  }

  const Costs& costs_;
  const SimulationOptions& options_;
  Layout layout_;
  std::vector<std::size_t> segments_;  // by chunk
  bool is_single_segment_ = false;     // no chunk has more than one
  std::vector<Lane> lanes_;
  std::vector<Player> players_;
  std::vector<Core> cores_;  // of all hosts; empty: a core for each rank
  Simulation result_;
};

}  // namespace

Simulation simulate(std::span<const Schedule> program, const Costs& costs,
                    const SimulationOptions& options) {
  return Stage(program, costs, options).play();
}

}  // namespace kolo::inline v0
