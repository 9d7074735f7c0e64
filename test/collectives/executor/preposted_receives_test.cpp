// Preposted receives: every algorithm gives the same bytes with them as without. The channels of
// this test write to a preposted buffer as early as possible and read sent memory as late as they
// may.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/executor/executor.h"
#include "collectives/executor/recorder.h"
#include "test/support/catch.h"
#include "transports/base/preposted_receives.h"

namespace kolo {
namespace {

constexpr std::size_t kTold = 7;

// The one-way queue from one rank to another. A segment borrows the sender's memory until it is
// read. The receiver may prepost buffers for it.
struct Way {
  struct Segment {
    std::vector<std::byte> copy;
    std::span<const std::byte> lent;
    bool is_placed = false;

    std::span<const std::byte> bytes() const { return is_placed || lent.empty() ? copy : lent; }
  };

  // Copies sent segments into the preposted buffers.
  void place() {
    for (std::size_t i = 0; i < std::min(segments.size(), told.size()); ++i) {
      if (segments[i].is_placed || told[i].data() == nullptr) continue;
      const auto bytes = segments[i].bytes();
      REQUIRE(told[i].size() == bytes.size());
      std::copy(bytes.begin(), bytes.end(), told[i].begin());
      segments[i].copy.assign(bytes.begin(), bytes.end());
      segments[i].is_placed = true;
    }
  }

  std::deque<Segment> segments;
  // preposted buffers, beginning with the next segment; null data: the segment is viewed
  std::deque<std::span<std::byte>> told;
  std::size_t early = 0;  // segments that were written before the receive call
};

class EarlyChannel : public Channel {
 public:
  EarlyChannel(int peer, Way& out, Way& in) : peer_(peer), out_(out), in_(in) {
    capabilities_.credit_segments = 64;
    capabilities_.zero_copy_bytes = 1;
  }

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }

  std::byte* reserve(std::size_t bytes) override {
    slot_.assign(bytes, std::byte{0});
    return slot_.data();
  }
  void commit(unsigned) override { push({slot_, {}}); }
  bool send(std::span<const std::byte> data, unsigned) override {
    push({{}, data});
    return true;
  }
  bool is_drained() override {
    return std::all_of(out_.segments.begin(), out_.segments.end(), [](const Way::Segment& each) {
      return each.is_placed || each.lent.empty();
    });
  }

  const std::byte* view(std::size_t bytes) override {
    REQUIRE((in_.told.empty() || in_.told.front().data() == nullptr));
    if (in_.segments.empty()) return nullptr;
    REQUIRE(in_.segments.front().bytes().size() == bytes);
    return in_.segments.front().bytes().data();
  }
  void release() override { pop(); }
  bool receive(std::span<std::byte> into, unsigned) override {
    if (!in_.told.empty()) REQUIRE(in_.told.front().data() == into.data());
    if (in_.segments.empty()) return false;
    const Way::Segment& segment = in_.segments.front();
    REQUIRE(segment.bytes().size() == into.size());
    if (segment.is_placed) {
      ++in_.early;
      REQUIRE(std::memcmp(into.data(), segment.copy.data(), into.size()) == 0);
    } else {
      std::copy(segment.bytes().begin(), segment.bytes().end(), into.begin());
    }
    pop();
    return true;
  }

 protected:
  Way& in() { return in_; }

 private:
  void push(Way::Segment segment) {
    out_.segments.push_back(std::move(segment));
    out_.place();
  }
  void pop() {
    in_.segments.pop_front();
    if (!in_.told.empty()) in_.told.pop_front();
  }

  int peer_;
  Way& out_;
  Way& in_;
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  std::vector<std::byte> slot_;
};

class ToldChannel final : public EarlyChannel, public PrepostedReceives {
 public:
  using EarlyChannel::EarlyChannel;

  std::size_t expected_segments() const override { return kTold; }
  bool expect(std::size_t ahead, std::span<std::byte> into) override {
    auto& told = in().told;
    REQUIRE(ahead <= told.size());
    if (ahead < told.size()) {  // a repeated announcement of the same buffer
      REQUIRE(told[ahead].data() == into.data());
      return true;
    }
    told.push_back(into);
    in().place();
    return true;
  }
};

struct Outcome {
  std::vector<std::vector<std::byte>> outputs;  // by rank
  std::size_t early = 0;
};

constexpr std::size_t kSegmentUnits = 1;  // of 64 bytes: 16 elements

// Runs all ranks of one algorithm in one thread, in a seeded random order.
template <typename SomeChannel>
Outcome run(const Algorithm& algorithm, int size, int root, std::size_t count, bool is_in_place,
            Recorder* recorder = nullptr) {
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<Way> ways(ranks * ranks);
  std::vector<std::unique_ptr<Channel>> channels(ranks * ranks);
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<std::vector<float>> ins(ranks);
  std::vector<std::vector<float>> outs(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<Channel*> by_rank(ranks);
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      auto& channel = channels[rank * ranks + peer];
      channel = std::make_unique<SomeChannel>(static_cast<int>(peer), ways[rank * ranks + peer],
                                              ways[peer * ranks + rank]);
      by_rank[peer] = channel.get();
    }
    PlanRequest request;
    request.ranks.rank = static_cast<int>(rank);
    request.ranks.size = size;
    request.ranks.root = root;
    executors.push_back(std::make_unique<Executor>(algorithm.write(request), by_rank));
    ins[rank].resize(count * ranks);
    std::iota(ins[rank].begin(), ins[rank].end(), static_cast<float>(1000 * rank));
    outs[rank].resize(count * ranks);
    Binding binding;
    binding.in = ins[rank].data();
    binding.out = is_in_place ? ins[rank].data() : outs[rank].data();
    binding.recorder = recorder;
    binding.header.collective = algorithm.collective;
    binding.header.segment_units = kSegmentUnits;
    binding.header.count_and_plan = static_cast<std::uint64_t>(count) << 16;
    executors.back()->start(binding);
  }
  std::mt19937 random(static_cast<unsigned>(size));
  std::vector<bool> is_done(ranks);
  for (int tries = 0; tries < 20'000; ++tries) {
    const std::size_t rank = random() % ranks;
    if (!is_done[rank]) is_done[rank] = executors[rank]->advance();
  }
  Outcome outcome;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    REQUIRE(is_done[rank]);
    const auto bytes = std::as_bytes(std::span(is_in_place ? ins[rank] : outs[rank]));
    outcome.outputs.emplace_back(bytes.begin(), bytes.end());
  }
  for (const Way& way : ways) {
    CHECK(way.told.empty());  // every preposted buffer was used
    outcome.early += way.early;
  }
  return outcome;
}

bool has_servers(const Algorithm& algorithm) {
  return algorithm.collective == Collective::kPush || algorithm.collective == Collective::kPull ||
         algorithm.collective == Collective::kPushPull;
}

bool is_tried(const Algorithm& algorithm, bool is_in_place) {
  if (algorithm.collective == Collective::kMessage || algorithm.is_for_hosts) return false;
  if (algorithm.collective == Collective::kBarrier || has_servers(algorithm)) return false;
  // For the others, input and output do not begin at the same address in place.
  return !is_in_place || algorithm.collective == Collective::kAllReduce ||
         algorithm.collective == Collective::kBroadcast ||
         algorithm.collective == Collective::kReduce || algorithm.collective == Collective::kScan ||
         algorithm.collective == Collective::kAllToAll;
}

}  // namespace

TEST_CASE("preposted receives complete early and change no result") {
  const bool is_in_place = GENERATE(false, true);
  std::size_t early = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_tried(algorithm, is_in_place)) continue;
    for (int size = 2; size <= 6; ++size) {
      for (const int root : {0, size - 1}) {
        for (std::size_t count : {std::size_t{5}, std::size_t{150}, std::size_t{1003}}) {
          if (algorithm.collective == Collective::kAllToAll)
            count *= static_cast<std::size_t>(size);
          INFO(to_string(algorithm.collective)
               << " by " << algorithm.name << ", " << size << " ranks, root " << root << ", "
               << count << " elements, " << (is_in_place ? "in place" : "apart"));
          const auto told = run<ToldChannel>(algorithm, size, root, count, is_in_place);
          const auto untold = run<EarlyChannel>(algorithm, size, root, count, is_in_place);
          REQUIRE(told.outputs == untold.outputs);
          REQUIRE(untold.early == 0);
          early += told.early;
        }
      }
    }
  }
  CHECK(early > 1000);
}

TEST_CASE("recorded operations prepost the same receives") {
  Recorder recorder(0, "");
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_tried(algorithm, true)) continue;
    INFO(to_string(algorithm.collective) << " by " << algorithm.name);
    const auto plain = run<ToldChannel>(algorithm, 4, 0, 1000, true);
    const auto recorded = run<ToldChannel>(algorithm, 4, 0, 1000, true, &recorder);
    CHECK(recorded.outputs == plain.outputs);
    CHECK(recorded.early == plain.early);
  }
}

}  // namespace kolo
