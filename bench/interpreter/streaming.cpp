// Long all-reduces: cost of the schedule over a loop, per segment.
//
// The two run in turn, round by round, over the same channels and buffers. The median of the
// rounds' ratios is judged, as a disturbance longer than a round affects both.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "bench/cli/sizes.h"
#include "bench/interpreter/channels.h"
#include "bench/interpreter/handwritten_ring.h"
#include "bench/interpreter/interpreter.h"
#include "bench/limits/thread_team.h"
#include "bench/measure/cores.h"
#include "bench/measure/statistics.h"
#include "collectives/algorithms/ring.h"

namespace kolo::bench {
namespace {

constexpr double kMostRatio = 1.03;
constexpr std::size_t kModulus = 97;  // sums stay exact

float given(int rank, std::size_t index) {
  return static_cast<float>((index + static_cast<std::size_t>(rank) * 31) % kModulus);
}

// One rank: its buffers, and both ways to compute the sums.
class Rank {
 public:
  Rank(InprocRanks& room, int rank, int size, std::size_t count)
      : size_(size),
        in_(count),
        out_(count),
        by_hand_{rank,
                 size,
                 &room.channel(rank, (rank + size - 1) % size),
                 &room.channel(rank, (rank + 1) % size),
                 kInterpreterSegment,
                 reduce_kernel(ElementType::kFloat32, ReduceOp::kSum)},
        channels_(room.channels(rank)),
        executor_(ring_all_reduce({.rank = rank, .size = size, .can_answer = true}), channels_) {
    for (std::size_t i = 0; i < count; ++i) in_[i] = given(rank, i);
  }

  void clear() { std::fill(out_.begin(), out_.end(), -1.0F); }

  void run_by_hand() { by_hand_.all_reduce(in_.data(), out_.data(), in_.size()); }
  std::size_t turns() const { return by_hand_.turns_of_two(in_.size()); }
  void turn(std::size_t turn) { by_hand_.turn_of_two(in_.data(), out_.data(), in_.size(), turn); }

  void start() { executor_.start(binding_of(in_.data(), out_.data(), in_.size())); }
  bool advance() { return executor_.advance(); }
  void run_interpreted() {
    start();
    SpinWait spinning;
    for (auto moves = executor_.moves(); !advance(); moves = executor_.moves()) {
      if (executor_.moves() != moves) spinning = {};
      spinning.wait();
    }
  }

  void require_sums(const char* who) const {
    for (std::size_t i = 0; i < out_.size(); ++i) {
      float sum = 0;
      for (int rank = 0; rank < size_; ++rank) sum += given(rank, i);
      if (out_[i] == sum) continue;
      throw std::runtime_error(fmt::format("{}: element {} of {} is {}, and should be {}", who, i,
                                           out_.size(), out_[i], sum));
    }
  }

 private:
  int size_;
  std::vector<float> in_;
  std::vector<float> out_;
  HandwrittenRing by_hand_;
  std::vector<Channel*> channels_;
  Executor executor_;
};

using Ranks = std::vector<std::unique_ptr<Rank>>;

Ranks make_ranks(InprocRanks& room, int size, std::size_t bytes) {
  Ranks ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<Rank>(room, rank, size, bytes / sizeof(float)));
  }
  return ranks;
}

// The row of alternating times: by hand, interpreted, by hand, ...
InterpreterRow row_of(const std::string& what, std::size_t bytes,
                      const std::vector<double>& times) {
  std::vector<double> by_hand, interpreted, ratios;
  for (std::size_t i = 0; i + 1 < times.size(); i += 2) {
    by_hand.push_back(times[i]);
    interpreted.push_back(times[i + 1]);
    ratios.push_back(times[i + 1] / times[i]);
  }
  return {what,
          format_bytes(bytes),
          quantile(by_hand, 0.5),
          quantile(interpreted, 0.5),
          "us",
          quantile(ratios, 0.5),
          "ratio",
          kMostRatio};
}

// A team's first round is not counted; odd rounds are by hand.
bool is_by_hand(int round) { return round % 2 == 1; }

InterpreterRow in_threads(int size, std::size_t bytes, int rounds) {
  InprocRanks room(size);
  const Ranks ranks = make_ranks(room, size, bytes);
  std::vector<int> round(static_cast<std::size_t>(size), -1);
  const std::vector<double> times =
      time_together(size, 2 * rounds,
                    {[&](int rank) {
                       Rank& mine = *ranks[static_cast<std::size_t>(rank)];
                       if (round[static_cast<std::size_t>(rank)]++ >= 0)
                         mine.require_sums("ring in threads");
                       mine.clear();
                     },
                     [&](int rank) {
                       Rank& mine = *ranks[static_cast<std::size_t>(rank)];
                       is_by_hand(round[static_cast<std::size_t>(rank)]) ? mine.run_by_hand()
                                                                         : mine.run_interpreted();
                     }});
  return row_of(fmt::format("ring of {} in threads", size), bytes, times);
}

InterpreterRow in_one_thread(std::size_t bytes, int rounds) {
  InprocRanks room(2);
  const Ranks ranks = make_ranks(room, 2, bytes);
  int round = -1;
  const auto by_hand = [&] {
    const std::size_t turns = std::max(ranks[0]->turns(), ranks[1]->turns());
    for (std::size_t turn = 0; turn < turns; ++turn) {
      for (const auto& rank : ranks) rank->turn(turn);
    }
  };
  const auto interpreted = [&] {
    for (const auto& rank : ranks) rank->start();
    bool is_done[2] = {false, false};
    while (!is_done[0] || !is_done[1]) {
      for (std::size_t rank = 0; rank < 2; ++rank)
        is_done[rank] = is_done[rank] || ranks[rank]->advance();
    }
  };
  const std::vector<double> times =
      time_together(1, 2 * rounds,
                    {[&](int) {
                       for (const auto& rank : ranks) {
                         if (round >= 0) rank->require_sums("ring in one thread");
                         rank->clear();
                       }
                       ++round;
                     },
                     [&](int) { is_by_hand(round) ? by_hand() : interpreted(); }});
  return row_of("ring of 2 in one thread", bytes, times);
}

int rounds_of(std::size_t bytes, bool is_quick) {
  constexpr std::size_t kBytesInAll = std::size_t{4} << 30;
  return is_quick ? 2 : static_cast<int>(std::clamp<std::size_t>(kBytesInAll / bytes, 30, 1000));
}

}  // namespace

std::vector<InterpreterRow> streaming_rows(const InterpreterRequest& request) {
  const std::vector<std::size_t> sizes =
      request.is_quick ? std::vector<std::size_t>{1000, 300'000}
                       : std::vector<std::size_t>{1 << 20, 4 << 20, 16 << 20, 64 << 20};
  std::vector<InterpreterRow> rows;
  const bool has_cores = available_cores().size() >= static_cast<std::size_t>(request.ranks);
  for (const std::size_t bytes : sizes) {
    rows.push_back(in_threads(request.ranks, bytes, rounds_of(bytes, request.is_quick)));
    if (!has_cores) rows.back().limit = -1;  // this would measure the kernel's scheduler
  }
  for (const std::size_t bytes : sizes) {
    rows.push_back(in_one_thread(bytes, rounds_of(bytes, request.is_quick)));
  }
  return rows;
}

}  // namespace kolo::bench
