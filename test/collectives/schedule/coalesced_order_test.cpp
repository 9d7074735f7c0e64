// Coalesced order of a schedule: chunks for one peer go in one message if nothing prevents it.
#include "collectives/schedule/coalesced_order.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "collectives/algorithms/halving_doubling.h"
#include "collectives/algorithms/scatter_allgather.h"
#include "collectives/executor/executor.h"
#include "collectives/schedule/simulator.h"
#include "test/support/catch.h"

namespace kolo {
namespace {

constexpr int kMuchCredit = 64;

// The number of messages that a rank sends; coalesced segments count as one.
int messages_of(const Schedule& brief) {
  int messages = 0;
  for (std::size_t i = 0; i < brief.steps.size(); ++i) {
    const bool is_last = i + 1 == brief.steps.size();
    const bool goes_along = !is_last && is_coalesced_with_next(brief.steps[i], brief.steps[i + 1]);
    messages += sends_segment(brief.steps[i].kind) && !goes_along ? 1 : 0;
  }
  return messages;
}

int messages_of(const Schedule& schedule, int credit) {
  return messages_of(coalesced_schedule(schedule, credit));
}

Step send_chunk(int chunk) {
  Step step;
  step.kind = StepKind::kSend;
  step.to = 1;
  step.chunk = static_cast<std::uint16_t>(chunk);
  step.in = {Place::kOutput, step.chunk};
  return step;
}

Step receive_chunk(int chunk) {
  Step step;
  step.kind = StepKind::kReceive;
  step.from = 1;
  step.chunk = static_cast<std::uint16_t>(chunk);
  step.out = {Place::kOutput, step.chunk};
  return step;
}

// The one-way queue from one rank to another: segments in memory, and their flags.
struct Way {
  std::deque<std::vector<std::byte>> segments;
  std::vector<unsigned> flags;
};

class MemoryChannel final : public Channel {
 public:
  MemoryChannel(int peer, Way& out, Way& in) : peer_(peer), out_(out), in_(in) {
    capabilities_.credit_segments = kMuchCredit;
  }

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }

  std::byte* reserve(std::size_t bytes) override {
    slot_.resize(bytes);
    return slot_.data();
  }
  void commit(unsigned flags) override {
    out_.segments.push_back(slot_);
    out_.flags.push_back(flags);
  }
  bool send(std::span<const std::byte> data, unsigned flags) override {
    slot_.assign(data.begin(), data.end());
    commit(flags);
    return true;
  }
  bool is_drained() override { return true; }

  const std::byte* view(std::size_t bytes) override {
    if (in_.segments.empty()) return nullptr;
    REQUIRE(in_.segments.front().size() == bytes);
    return in_.segments.front().data();
  }
  void release() override { in_.segments.pop_front(); }
  bool receive(std::span<std::byte> into, unsigned) override {
    const std::byte* from = view(into.size());
    if (from == nullptr) return false;
    std::copy(from, from + into.size(), into.begin());
    release();
    return true;
  }

 private:
  int peer_;
  Way& out_;
  Way& in_;
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  std::vector<std::byte> slot_;
};

}  // namespace

TEST_CASE("halving and doubling send one message per round") {
  for (const int size : {2, 4, 8, 16, 32}) {
    INFO("size " << size);
    int rounds = 0;
    while (1 << rounds < size) ++rounds;
    for (int rank = 0; rank < size; ++rank) {
      const ScheduleRequest request{.rank = rank, .size = size};
      CHECK(messages_of(recursive_halving_reduce_scatter(request), kMuchCredit) == rounds);
      CHECK(messages_of(recursive_doubling_all_gather(request), kMuchCredit) == rounds);
    }
  }
}

TEST_CASE("steps beyond the channel's credit are not coalesced") {
  const Schedule schedule = recursive_doubling_all_gather({.rank = 0, .size = 8});
  CHECK(messages_of(schedule, 5) == 1 + 1 + 1);  // four chunks, and the opening segment
  CHECK(messages_of(schedule, 4) == 1 + 1 + 4);
  CHECK(messages_of(schedule, 1) == 1 + 2 + 4);
}

TEST_CASE("no send overtakes the step that writes its data, or another send of its channel") {
  Schedule schedule;
  schedule.size = 2;
  schedule.chunks = 4;
  schedule.steps = {send_chunk(0), receive_chunk(1), send_chunk(1), receive_chunk(2),
                    send_chunk(3)};
  CHECK(coalesced_order(schedule, kMuchCredit) == std::vector<std::size_t>{0, 1, 2, 4, 3});
  schedule.steps[1].stage = 1;  // That is a later stage, so chunk 1 is sent before it.
  CHECK(coalesced_order(schedule, kMuchCredit) == std::vector<std::size_t>{0, 2, 4, 3, 1});
}

TEST_CASE("steps of further slices have no segment to work on") {
  const Schedule schedule = recursive_halving_reduce_scatter({.rank = 1, .size = 4});
  REQUIRE(schedule.slices == 2);
  const auto order = coalesced_order(schedule, kMuchCredit);
  CHECK(order.size() == schedule.steps.size() / 2);
  for (const std::size_t step : order) CHECK(schedule.steps[step].slice == 0);
}

TEST_CASE("the executor marks segments that another one follows") {
  constexpr int kSize = 4;
  // elements of a chunk: 64 bytes do not fit into the opening segment
  constexpr std::size_t kShare = 16;
  std::vector<Way> ways(kSize * kSize);
  const auto way = [&](int from, int to) -> Way& {
    return ways[static_cast<std::size_t>(from * kSize + to)];
  };
  std::vector<std::unique_ptr<MemoryChannel>> all;
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<std::vector<float>> data(kSize);
  for (int rank = 0; rank < kSize; ++rank) {
    std::vector<Channel*> channels(kSize);
    for (int peer = 0; peer < kSize; ++peer) {
      if (peer == rank) continue;
      all.push_back(std::make_unique<MemoryChannel>(peer, way(rank, peer), way(peer, rank)));
      channels[static_cast<std::size_t>(peer)] = all.back().get();
    }
    executors.push_back(std::make_unique<Executor>(
        recursive_halving_reduce_scatter({.rank = rank, .size = kSize}), channels));
    std::vector<float>& mine = data[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < kSize * kShare; ++i) {
      mine.push_back(static_cast<float>(rank * 100) + static_cast<float>(i));
    }
    Binding binding;
    binding.in = mine.data();
    binding.out = mine.data() + static_cast<std::size_t>(rank) * kShare;
    binding.header.collective = Collective::kReduceScatter;
    binding.header.segment_units = 2;
    binding.header.count_and_plan = (kSize * kShare) << 16;
    executors.back()->start(binding);
  }
  bool is_moving = true;
  std::vector<bool> is_done(kSize);
  while (is_moving) {
    is_moving = false;
    for (std::size_t rank = 0; rank < kSize; ++rank) {
      if (is_done[rank]) continue;
      const auto moves = executors[rank]->moves();
      is_done[rank] = executors[rank]->advance();
      is_moving |= is_done[rank] || executors[rank]->moves() != moves;
    }
  }
  for (std::size_t rank = 0; rank < kSize; ++rank) {
    REQUIRE(is_done[rank]);
    for (std::size_t i = rank * kShare; i < (rank + 1) * kShare; ++i) {
      REQUIRE(data[rank][i] == 600 + 4 * static_cast<float>(i));
    }
  }
  // To the first partner the header and two chunks; to the second the header and one chunk.
  CHECK(way(0, 2).flags == std::vector<unsigned>{kMore, kMore, kPlain});
  CHECK(way(0, 1).flags == std::vector<unsigned>{kMore, kPlain});
  CHECK(way(0, 3).flags.empty());
}

TEST_CASE("coalesced segments cost one message and arrive together") {
  std::vector<Schedule> program;
  for (int rank = 0; rank < 4; ++rank) {
    program.push_back(recursive_halving_reduce_scatter({.rank = rank, .size = 4}));
  }
  Costs costs;
  costs.local.latency_us = 0;
  costs.local.send_us = costs.local.receive_us = 10;
  costs.local.next_us = 1;
  costs.overhead_us = costs.copy_us_per_byte = costs.reduce_us_per_byte = 0;
  SimulationOptions options;
  options.count = 4;
  options.credit = kMuchCredit;
  const Simulation played = simulate(program, costs, options);
  // first round: two chunks each way; second round: one each way
  CHECK(played.total_us == Approx(11 + 11 + 10 + 10));
  std::vector<double> arrivals;
  for (const Passage& passage : played.passages) {
    if (passage.from == 0 && passage.to == 2) arrivals.push_back(passage.arrived_us);
  }
  REQUIRE(arrivals.size() == 2);
  CHECK(arrivals[0] == arrivals[1]);
  options.credit = 1;  // the first cannot wait for the second, which has no credit
  CHECK(simulate(program, costs, options).total_us > played.total_us);
  // A root of five sends five chunks in a row to rank 1, with credit for four.
  std::vector<Schedule> scattering;
  for (int rank = 0; rank < 5; ++rank) {
    scattering.push_back(scatter_allgather_broadcast({.rank = rank, .size = 5}));
  }
  options.count = 5;
  options.credit = 4;
  CHECK(simulate(scattering, costs, options).total_us > 0);
}

}  // namespace kolo
