// Zero-copy sends: the channels of this test read sent memory as late as they may. The executor
// must send a copy of any memory that is overwritten before then.
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithms/ring.h"
#include "collectives/executor/executor.h"
#include "test/support/catch.h"

namespace kolo {
namespace {

// The one-way queue from one rank to another. A segment is a slot's copy, or borrows the sender's
// memory until the receiver has read it.
struct Segment {
  std::vector<std::byte> copy;
  std::span<const std::byte> lent;

  std::span<const std::byte> bytes() const { return lent.empty() ? copy : lent; }
};

struct Way {
  std::deque<Segment> segments;
  int slots = 0;  // slots used so far, without headers
  int straight = 0;
};

class LateChannel final : public Channel {
 public:
  LateChannel(int peer, Way& out, Way& in) : peer_(peer), out_(out), in_(in) {
    capabilities_.credit_segments = 64;
    capabilities_.zero_copy_bytes = 1;
  }

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }

  std::byte* reserve(std::size_t bytes) override {
    slot_.resize(bytes);
    return slot_.data();
  }
  void commit(unsigned) override {
    out_.slots += slot_.size() == kHeaderSegmentBytes ? 0 : 1;
    out_.segments.push_back({slot_, {}});
  }
  bool send(std::span<const std::byte> data, unsigned) override {
    ++out_.straight;
    out_.segments.push_back({{}, data});
    return true;
  }
  bool is_drained() override { return out_.segments.empty(); }

  const std::byte* view(std::size_t bytes) override {
    if (in_.segments.empty()) return nullptr;
    const auto first = in_.segments.front().bytes();
    REQUIRE(first.size() == bytes);
    return first.data();
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

constexpr std::size_t kSegment = 32;  // elements

// Two ranks with a program each, in place. Rank 1 always advances as far as it can before rank 0
// reads anything from it.
struct Two {
  Two(const Schedule& of_0, const Schedule& of_1, std::size_t count) {
    const Schedule* const schedules[] = {&of_0, &of_1};
    for (int rank = 0; rank < 2; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      channels[at] = std::make_unique<LateChannel>(1 - rank, ways[at],
                                                   ways[static_cast<std::size_t>(1 - rank)]);
      std::vector<Channel*> by_rank(2);
      by_rank[1 - at] = channels[at].get();
      executors[at] = std::make_unique<Executor>(*schedules[at], by_rank);
      for (std::size_t i = 0; i < count; ++i) {
        data[at].push_back(static_cast<float>(1000 * rank) + static_cast<float>(i));
      }
      Binding binding;
      binding.in = binding.out = data[at].data();
      binding.header.collective = Collective::kAllReduce;
      binding.header.segment_units = kSegment * sizeof(float) / kSegmentAlignment;
      binding.header.count_and_plan = static_cast<std::uint64_t>(count) << 16;
      executors[at]->start(binding);
    }
  }

  void run() {
    bool is_done[2] = {};
    for (int tries = 0; tries < 1000 && !(is_done[0] && is_done[1]); ++tries) {
      is_done[0] = is_done[0] || executors[0]->advance();
      for (std::uint64_t moves = ~std::uint64_t{0};
           !is_done[1] && moves != executors[1]->moves();) {
        moves = executors[1]->moves();
        is_done[1] = executors[1]->advance();
      }
    }
    REQUIRE(is_done[0]);
    REQUIRE(is_done[1]);
  }

  Way ways[2];  // from rank 0, from rank 1
  std::unique_ptr<LateChannel> channels[2];
  std::unique_ptr<Executor> executors[2];
  std::vector<float> data[2];
};

Step step(StepKind kind, std::int16_t peer, Place in, Place out) {
  Step made;
  made.kind = kind;
  if (sends_segment(kind)) made.to = peer;
  if (receives_segment(kind)) made.from = peer;
  made.in.place = in;
  made.out.place = out;
  return made;
}

Schedule of_steps(int rank, std::vector<Step> steps) {
  Schedule schedule;
  schedule.collective = Collective::kAllReduce;
  schedule.algorithm = "by hand";
  schedule.rank = rank;
  schedule.size = 2;
  schedule.contributions = 2;
  schedule.input = schedule.output = {0, 1};
  schedule.steps = std::move(steps);
  return schedule;
}

}  // namespace

TEST_CASE("an all-reduce ring of two ranks copies nothing into slots") {
  const std::size_t count = GENERATE(64, 128, 1000, 4099);
  INFO("count " << count);
  Two two(ring_all_reduce({.rank = 0, .size = 2}), ring_all_reduce({.rank = 1, .size = 2}), count);
  two.run();
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(two.data[0][i] == 1000 + 2 * static_cast<float>(i));
    REQUIRE(two.data[1][i] == two.data[0][i]);
  }
  for (const Way& way : two.ways) {
    CHECK(way.slots == 0);
    CHECK(way.straight > 0);
  }
}

TEST_CASE("a sum that is overwritten before it is read is sent as a copy") {
  const Step gives = step(StepKind::kSend, 1, Place::kInput, Place::kNone);
  const Step gets = step(StepKind::kReceive, 1, Place::kNone, Place::kOutput);
  Step sums = step(StepKind::kReceiveReduceCopySend, 0, Place::kInput, Place::kOutput);
  sums.is_final = true;

  SECTION("it is overwritten by received data") {
    const Step overwrites = step(StepKind::kReceive, 0, Place::kNone, Place::kOutput);
    Two two(of_steps(0, {gives, gives, gets}), of_steps(1, {sums, overwrites}), kSegment);
    two.run();
    for (std::size_t i = 0; i < kSegment; ++i) {
      REQUIRE(two.data[0][i] == 1000 + 2 * static_cast<float>(i));
      REQUIRE(two.data[1][i] == static_cast<float>(i));
    }
    CHECK(two.ways[1].slots == 1);
  }
  SECTION("it is overwritten by a reduction") {
    const Step overwrites = step(StepKind::kReceiveReduce, 0, Place::kOutput, Place::kOutput);
    Two two(of_steps(0, {gives, gives, gets}), of_steps(1, {sums, overwrites}), kSegment);
    two.run();
    for (std::size_t i = 0; i < kSegment; ++i) {
      REQUIRE(two.data[0][i] == 1000 + 2 * static_cast<float>(i));
      REQUIRE(two.data[1][i] == 1000 + 3 * static_cast<float>(i));
    }
    CHECK(two.ways[1].slots == 1);
  }
  SECTION("a sum that is not overwritten is sent without a copy") {
    Two two(of_steps(0, {gives, gets}), of_steps(1, {sums}), kSegment);
    two.run();
    for (std::size_t i = 0; i < kSegment; ++i) {
      REQUIRE(two.data[0][i] == 1000 + 2 * static_cast<float>(i));
      REQUIRE(two.data[1][i] == two.data[0][i]);
    }
    CHECK(two.ways[1].slots == 0);
    CHECK(two.ways[1].straight == 1);
  }
}

}  // namespace kolo
