// Non-temporal stores to memory that no cache holds (executor/non_temporal_stores.cpp); everything
// else stays the same. Runs executors over inproc: one treats all memory as cold, another treats
// none as cold.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/executor/plan_cache.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "transports/decorators/forwarding.h"
#include "transports/inproc/transport.h"

namespace kolo::test {
namespace {

constexpr std::size_t kAllIsCold = 0;
constexpr std::size_t kNoneIsCold = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kCount = 5003;  // elements; a prime
constexpr std::size_t kBytes = kCount * sizeof(float);
constexpr std::uint32_t kSegmentUnits = 9;  // 576 bytes, so that a chunk takes several segments
constexpr std::chrono::seconds kPatience{120};

// Channel that counts the bytes received into cold memory.
class Watched final : public decorators::ForwardingChannel {
 public:
  explicit Watched(Channel& inner) : ForwardingChannel(inner) {}

  std::size_t cold_bytes = 0;

  bool receive(std::span<std::byte> into, unsigned flags) override {
    if (!ForwardingChannel::receive(into, flags)) return false;
    if ((flags & kCold) != 0) cold_bytes += into.size();
    return true;
  }
};

// One rank with its channels.
class Rank {
 public:
  Rank(int rank, int size, const std::shared_ptr<Store>& store)
      : transport_(make_inproc({rank, size, store, Clock::now() + kPatience}, {})),
        rank_(rank),
        hosts_(static_cast<std::size_t>(size), 0) {
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) watched_.push_back(std::make_unique<Watched>(transport_->channel(peer)));
      channels_.push_back(peer == rank ? nullptr : watched_.back().get());
    }
  }

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(hosts_.size()); }
  PlanCache plans(std::size_t cache_bytes) { return {rank_, channels_, hosts_, cache_bytes}; }

  // Returns the bytes that this rank received into cold memory.
  std::size_t run(Executor& executor, const Binding& binding) {
    for (const auto& channel : watched_) channel->cold_bytes = 0;
    executor.start(binding);
    const Deadline deadline = Clock::now() + kPatience;
    while (!executor.advance()) {
      transport_->progress();
      std::this_thread::yield();
      expect(Clock::now() < deadline, [&] { return "waits for " + executor.describe_wait(); });
    }
    return std::accumulate(
        watched_.begin(), watched_.end(), std::size_t{0},
        [](std::size_t sum, const auto& channel) { return sum + channel->cold_bytes; });
  }

 private:
  std::unique_ptr<Transport> transport_;
  int rank_;
  std::vector<int> hosts_;
  std::vector<std::unique_ptr<Watched>> watched_;
  std::vector<Channel*> channels_;
};

// Floats that start a few bytes past a cache line. Each is a small integer, different on every
// rank.
class Memory {
 public:
  explicit Memory(int seed) : floats_(kCount + 32) {
    auto* line = reinterpret_cast<std::byte*>(floats_.data());
    line += kSegmentAlignment - reinterpret_cast<std::uintptr_t>(line) % kSegmentAlignment;
    begin_ = line + 3 * sizeof(float);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto value = static_cast<float>((i * 7 + static_cast<std::size_t>(seed) * 31) % 101);
      std::memcpy(begin_ + i * sizeof(float), &value, sizeof(float));
    }
  }

  std::byte* begin() { return begin_; }
  bool operator==(const Memory& other) const {
    return std::memcmp(begin_, other.begin_, kBytes) == 0;
  }

 private:
  std::vector<float> floats_;
  std::byte* begin_;
};

enum class Where { kApart, kTogether };

// Input and output of one operation.
struct Buffers {
  explicit Buffers(int seed) : in(seed), out(-1 - seed + 1000) {}

  // Positions of a range's chunks. In place they are the positions in the whole buffer.
  static std::size_t begin_of(const Schedule& schedule, const ChunkRange& held) {
    const int parts = schedule.chunks / schedule.spans;
    return chunk_begin(kCount, parts, held.count == 0 ? 0 : held.first % parts) * sizeof(float);
  }

  Binding bind(const Schedule& schedule, const CallHeader& header, Where where) {
    Binding binding;
    binding.header = header;
    binding.in = in.begin();
    binding.out = out.begin();
    if (where == Where::kTogether) {
      binding.in = in.begin() + begin_of(schedule, schedule.input);
      binding.out = in.begin() + begin_of(schedule, schedule.output);
    }
    return binding;
  }

  bool operator==(const Buffers& other) const { return in == other.in && out == other.out; }

  Memory in;
  Memory out;
};

CallHeader header_of(std::uint8_t row) {
  CallHeader header;
  header.collective = algorithms()[row].collective;
  header.algorithm = row;
  header.segment_units = kSegmentUnits;
  header.count_and_plan = std::uint64_t{kCount} << 16;
  return header;
}

PlanCache::Key key_of(std::uint8_t row, const ServerPlan& servers) {
  PlanCache::Key key;
  key.algorithm = row;
  key.peer = 1;
  key.data_bytes = kBytes;
  if (has_servers(algorithms()[row].collective)) key.servers = &servers;
  return key;
}

// The bytes that every rank receives into cold memory.
std::vector<std::size_t> cold_bytes(int size, Collective collective, const char* name, Where where,
                                    std::size_t cache_bytes) {
  const std::uint8_t row = find_algorithm(collective, name);
  std::vector<std::size_t> cold(static_cast<std::size_t>(size));
  const auto outcomes = run_threads(size, [&](int number, const std::shared_ptr<Store>& store) {
    Rank rank(number, size, store);
    PlanCache plans = rank.plans(cache_bytes);
    Executor& executor = plans.find(key_of(row, {}));
    Buffers buffers(number);
    cold[static_cast<std::size_t>(number)] =
        rank.run(executor, buffers.bind(executor.schedule(), header_of(row), where));
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text.empty());
  return cold;
}

using Sizes = std::vector<std::size_t>;

}  // namespace

TEST_CASE(
    "every algorithm gives the same result with cold memory and without, out of place and in "
    "place") {
  ServerPlan everywhere;
  everywhere.everywhere = true;
  for (const int size : {1, 2, 3, 5}) {
    const auto outcomes = run_threads(size, [&](int number, const std::shared_ptr<Store>& store) {
      Rank rank(number, size, store);
      PlanCache all_cold = rank.plans(kAllIsCold);
      PlanCache none_cold = rank.plans(kNoneIsCold);
      for (std::size_t row = 0; row < algorithms().size(); ++row) {
        const Algorithm& algorithm = algorithms()[row];
        const bool is_apart = number > 1 || size == 1;  // only between ranks 0 and 1
        if (algorithm.collective == Collective::kMessage && is_apart) continue;
        const auto key = key_of(static_cast<std::uint8_t>(row), everywhere);
        for (const Where where : {Where::kApart, Where::kTogether}) {
          const CallHeader header = header_of(static_cast<std::uint8_t>(row));
          Executor& one = all_cold.find(key);
          Executor& other = none_cold.find(key);
          Buffers cold(number);
          Buffers warm(number);
          rank.run(one, cold.bind(one.schedule(), header, where));
          const auto none = rank.run(other, warm.bind(other.schedule(), header, where));
          const std::string what = std::string(to_string(algorithm.collective)) + " by " +
                                   std::string(algorithm.name) +
                                   (where == Where::kApart ? ", apart" : ", in place");
          expect(cold == warm, what + ": other results in cold memory");
          expect(none == 0, what + ": nothing is cold");
        }
      }
    });
    for (const RankOutcome& outcome : outcomes) {
      INFO(size << " ranks: " << outcome.text);
      CHECK(outcome.text.empty());
    }
  }
}

TEST_CASE("received data is cold if the memory of the operation exceeds the cache") {
  const std::size_t share[] = {chunk_count(kCount, 2, 0) * sizeof(float),
                               chunk_count(kCount, 2, 1) * sizeof(float)};
  const Sizes all = {share[1], share[0]};
  const Sizes none = {0, 0};
  const auto gather = [](Where where, std::size_t cache_bytes) {
    return cold_bytes(2, Collective::kAllGather, "direct", where, cache_bytes);
  };
  CHECK(gather(Where::kApart, kAllIsCold) == all);
  CHECK(gather(Where::kApart, kBytes + share[1] - 1) == all);
  CHECK(gather(Where::kApart, kBytes + share[0]) == none);
  CHECK(gather(Where::kTogether, kBytes - 1) == all);
  CHECK(gather(Where::kTogether, kBytes) == none);
}

TEST_CASE("memory that a step has just sent or will send is not cold") {
  const auto all_to_all = [](Where where) {
    return cold_bytes(2, Collective::kAllToAll, "pairwise", where, kAllIsCold);
  };
  CHECK(all_to_all(Where::kApart) == Sizes{chunk_count(kCount, 2, 1) * sizeof(float),
                                           chunk_count(kCount, 2, 0) * sizeof(float)});
  CHECK(all_to_all(Where::kTogether) == Sizes{0, 0});
  // The leaves of a tree have nothing to send.
  CHECK(cold_bytes(4, Collective::kBroadcast, "binomial_tree", Where::kTogether, kAllIsCold) ==
        Sizes{0, kBytes, 0, kBytes});
}

}  // namespace kolo::test
