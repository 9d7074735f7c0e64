// Planner: its choices for costs with an obvious best algorithm, the same choice on all ranks, and
// precedence of a measured table and of the caller.
#include "collectives/planner/planner.h"

#include <cmath>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/algorithms/binomial_tree.h"
#include "collectives/algorithms/direct.h"
#include "collectives/algorithms/direct_reduce.h"
#include "collectives/algorithms/pairwise.h"
#include "collectives/algorithms/ring.h"
#include "collectives/planner/costs_text.h"
#include "collectives/planner/device_costs.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

PlannerInputs of_ranks(int size) {
  PlannerInputs situation;
  situation.size = size;
  situation.transport = "tcp";
  return situation;
}

// Expensive messages with cheap bytes, and the other way round.
constexpr Costs kFarAway{{1000.0}, {1000.0}, 0.1, 1e-6, 1e-6};
constexpr Costs kNarrow{{0.001}, {0.001}, 0.001, 1e-2, 1e-2};

std::string chosen(Planner& planner, Collective collective, std::size_t bytes) {
  return std::string(algorithm_name(planner.choose(collective, bytes)));
}

}  // namespace

TEST_CASE("device bytes cost memory bandwidth, and steps cost a launch and flags") {
  DeviceSpeed speed;
  speed.memory_GBps = 4000;
  const Costs fast = device_costs(speed);
  CHECK(fast.copy_us_per_byte * 1800e3 == Approx(1));  // 3600 GB/s, half of it for writing
  CHECK(fast.reduce_us_per_byte * 1200e3 == Approx(1));
  CHECK(fast.local.send_us_per_byte == 0);
  CHECK(fast.cores == 1);
  speed.memory_GBps = 0;
  CHECK(device_costs(speed).copy_us_per_byte > fast.copy_us_per_byte);
  speed.is_one_device = false;
  speed.link_GBps = 100;
  const Costs apart = device_costs(speed);
  CHECK((apart.copy_us_per_byte + apart.local.send_us_per_byte) * 100e3 == Approx(1));
  CHECK(apart.cores == 0);
  CHECK(costs_from(to_text(fast)) == fast);
}

TEST_CASE("calls on streams are priced by device passes if long and by steps if short") {
  PlannerInputs situation = of_ranks(4);
  situation.is_on_streams = true;
  situation.segments = {1 << 20, 1 << 20, 1 << 20, 64 << 20};
  DeviceSpeed speed;
  speed.memory_GBps = 4000;
  Planner shared(situation, device_costs(speed), {});
  speed.is_one_device = false;
  Planner apart(situation, device_costs(speed), {});
  const std::uint8_t ring = find_algorithm(Collective::kAllReduce, "ring");
  constexpr std::size_t kLong = std::size_t{64} << 20;
  // Each rank reads and writes its share six times, three of them in sums, all through one memory.
  const double passes_us = 4 * (3 * 2e-3 + 3 * 3e-3 + 3 * 2e-3) / 3600 * (kLong / 4);
  CHECK(shared.price(ring, kLong) > passes_us * 0.9);
  CHECK(shared.price(ring, kLong) > 2 * apart.price(ring, kLong));
  CHECK(apart.price(ring, 8) > 2 * 3 * 2);  // six dependent steps of 2 us each
  CHECK(chosen(apart, Collective::kAllReduce, 8) != "ring");
}

TEST_CASE("ranks that share a device pay a context switch per hop") {
  DeviceSpeed speed;
  speed.memory_GBps = 4000;
  PlannerInputs situation = of_ranks(2);
  situation.is_on_streams = true;
  situation.credit = 32;
  situation.segments = {1 << 20, 1 << 20, 1 << 20, 64 << 20};
  Planner shared(situation, device_costs(speed), {});
  speed.is_one_device = false;
  Planner apart(situation, device_costs(speed), {});
  const std::uint8_t ring = find_algorithm(Collective::kAllReduce, "ring");
  const std::uint8_t one_shot = find_algorithm(Collective::kAllReduce, "one_shot");
  CHECK(shared.price(ring, 8) > 200);  // two hops
  CHECK(shared.price(one_shot, 8) < 150);
  CHECK(apart.price(ring, 8) < 50);
  CHECK(shared.price(one_shot, 1 << 20) < shared.price(ring, 1 << 20));
  CHECK(chosen(shared, Collective::kAllReduce, std::size_t{256} << 20) == "ring");
}

TEST_CASE("segments grow with the bandwidth-delay product, within the channels' limits") {
  const SegmentRule rule{64 * 1024, 4 << 20, 8 * 1024, 64 * 1024};
  const Schedule sum = ring_all_reduce({.rank = 0, .size = 4});
  const auto bytes = [&](double latency_us, double us_per_byte, std::size_t chunk) {
    Costs costs;
    costs.remote.latency_us = latency_us;
    costs.remote.send_us_per_byte = us_per_byte;
    costs.remote.receive_us_per_byte = us_per_byte / 2;
    return rule.suited_to(costs).bytes(sum, chunk, 0);
  };
  constexpr double kGigabit = 8e-3;
  constexpr std::size_t kLong = std::size_t{64} << 20;
  CHECK(bytes(0.2, 1e-4, kLong) == 64 * 1024);         // one host
  CHECK(bytes(100, 1e-5, kLong) == 64 * 1024);         // a busy host: not a long path
  CHECK(bytes(400, kGigabit, kLong) == 64 * 1024);     // bandwidth-delay product 50 kB
  CHECK(bytes(1000, kGigabit, kLong) == 156'224);      // 125 kB, plus a quarter
  CHECK(bytes(10'000, kGigabit, kLong) == 1'562'496);  // 1.25 MB
  // not split, because that would hide no latency
  CHECK(bytes(10'000, kGigabit, 1 << 20) == 1'562'496);
  CHECK(bytes(100'000, kGigabit, kLong) == 4 << 20);  // the channels' maximum
  CHECK(bytes(10'000, 0, kLong) == 64 * 1024);        // unknown rate
  CHECK(rule.suited_to({}).bytes(sum, 64 * 1024, 0) == 16 * 1024);
  Costs costs;
  costs.local.latency_us = 10'000;
  costs.local.receive_us_per_byte = kGigabit;
  CHECK(rule.suited_to(costs).bytes(sum, kLong, 32 * 1024) ==
        32 * 1024);  // a smaller requested length is used
}

TEST_CASE("zero-copy transfers use the channels' zero-copy segment length") {
  constexpr std::size_t kKiB = 1024;
  const SegmentRule rule{256 * kKiB, 2048 * kKiB, 256 * kKiB, 512 * kKiB};
  const auto gather = [](int size) { return direct_all_gather({.rank = 0, .size = size}); };
  CHECK(rule.bytes(gather(2), 4096 * kKiB, 0) == 512 * kKiB);
  CHECK(rule.bytes(gather(2), 1024 * kKiB, 0) == 512 * kKiB);  // no rank passes it on
  CHECK(rule.bytes(gather(4), 1024 * kKiB, 0) == 256 * kKiB);
  CHECK(rule.bytes(gather(4), 4096 * kKiB, 0) == 512 * kKiB);
  CHECK(rule.bytes(gather(4), 4096 * kKiB, 64 * kKiB) == 64 * kKiB);
  // Sums of two ranks are sent from memory. They need a view, but no slot.
  const Schedule sum = ring_all_reduce({.rank = 0, .size = 2});
  CHECK(rule.bytes(sum, 4096 * kKiB, 0) == 512 * kKiB);
  CHECK(rule.bytes(sum, 512 * kKiB, 0) == 512 * kKiB);
  CHECK(rule.bytes(sum, 4096 * kKiB, 0, true) == 256 * kKiB);  // scaled into slots
  CHECK(rule.bytes(ring_reduce_scatter({.rank = 0, .size = 2}), 4096 * kKiB, 0) == 512 * kKiB);
  CHECK(rule.bytes(ring_all_reduce({.rank = 0, .size = 4}), 4096 * kKiB, 0) == 256 * kKiB);
  SegmentRule farther = rule;  // channels whose zero-copy segments are far longer
  farther.straight = 2048 * kKiB;
  CHECK(farther.bytes(sum, 4096 * kKiB, 0) == 512 * kKiB);
  // Data that a rank passes on and does not keep go through slots.
  CHECK(rule.bytes(binomial_tree_gather({.rank = 0, .size = 4}), 4096 * kKiB, 0) == 256 * kKiB);
  CHECK(rule.bytes(binomial_tree_scatter({.rank = 2, .size = 4}), 4096 * kKiB, 0) == 256 * kKiB);
  CHECK(rule.bytes(direct_gather({.rank = 2, .size = 4}), 4096 * kKiB, 0) == 512 * kKiB);
  // Copies are sent from slots, because each rank's input and output may be one memory or two.
  const Schedule exchange = pairwise_all_to_all({.rank = 0, .size = 2});
  CHECK(rule.bytes(exchange, 4096 * kKiB, 0) == 256 * kKiB);
  SegmentRule cutting = rule;  // channels that overlap the copies of the two ranks
  cutting.shortest = 8 * kKiB;
  CHECK(cutting.bytes(gather(2), 1024 * kKiB, 0) == 256 * kKiB);
}

TEST_CASE("expensive messages favor few rounds, expensive bytes favor few bytes") {
  for (const int size : {4, 8, 16}) {
    INFO(size);
    Planner far_away(of_ranks(size), kFarAway, {});
    CHECK(chosen(far_away, Collective::kAllReduce, 8) == "one_shot");
    CHECK(chosen(far_away, Collective::kGather, 64) == "direct");
    CHECK(chosen(far_away, Collective::kScan, 64) == "chain");
    Planner narrow(of_ranks(size), kNarrow, {});
    const std::string all_reduce = chosen(narrow, Collective::kAllReduce, 1 << 26);
    CHECK(all_reduce != "one_shot");
    CHECK(all_reduce != "recursive_doubling");
    CHECK(chosen(narrow, Collective::kAllToAll, 1 << 24) != "bruck");
    CHECK(chosen(narrow, Collective::kBroadcast, 1 << 26) != "binomial_tree");
  }
}

TEST_CASE("with shared cores, nearly equal prices are decided by the number of waits") {
  Costs costs{{0.5}, {0.5}, 0.1, 1e-6, 1e-6};
  costs.local.send_us_per_byte = costs.local.receive_us_per_byte = 1e-3;  // time on the cores
  costs.cores = 1;
  Planner planner(of_ranks(4), costs, {});
  constexpr std::size_t kBytes = 1 << 20;
  const auto row = [](const char* name) {
    return find_algorithm(Collective::kReduceScatter, name);
  };
  const double ring = planner.price(row("ring"), kBytes);
  const double direct = planner.price(row("direct"), kBytes);
  INFO("ring " << ring << ", direct " << direct);
  REQUIRE(std::abs(ring - direct) < 0.04 * direct);  // three waits against one
  CHECK(chosen(planner, Collective::kReduceScatter, kBytes) != "ring");
  CHECK(chosen(planner, Collective::kReduceScatter, kBytes) != "bidirectional_ring");
}

TEST_CASE("with shared cores, few rounds of few messages win for short data") {
  Costs costs{{0.7, 0.04, 0.04, 0.01, 6e-5, 6e-5}, {}, 0.02, 1.8e-5, 1.8e-5};
  costs.switch_us = 1.1;
  costs.cores = 2;
  Planner planner(of_ranks(16), costs, {});
  CHECK(chosen(planner, Collective::kAllReduce, 2048) == "recursive_multiplying");
  CHECK(chosen(planner, Collective::kAllReduce, 1 << 20) != "recursive_multiplying");
  costs.local.send_us = costs.local.receive_us = 5;  // now messages are expensive
  Planner dear(of_ranks(16), costs, {});
  CHECK(chosen(dear, Collective::kAllReduce, 2048) == "recursive_doubling");
}

TEST_CASE("hierarchical algorithms are not chosen on one host") {
  PlannerInputs one = of_ranks(4);
  PlannerInputs two = of_ranks(4);
  two.hosts = {0, 0, 1, 1};
  Costs costs;
  costs.remote.latency_us = 1000;
  int chosen_across = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.is_for_hosts) continue;
    Planner on_one(one, costs, {});
    Planner on_two(two, costs, {});
    for (std::size_t bytes = 8; bytes <= std::size_t{1} << 26; bytes *= 8) {
      INFO(to_string(algorithm.collective) << ", " << bytes << " B");
      CHECK(chosen(on_one, algorithm.collective, bytes) != algorithm.name);
      chosen_across += chosen(on_two, algorithm.collective, bytes) == algorithm.name ? 1 : 0;
    }
  }
  CHECK(chosen_across > 0);
}

TEST_CASE("every candidate has a price that grows with the bytes") {
  for (const Algorithm& algorithm : algorithms()) {
    if (has_servers(algorithm.collective) || algorithm.collective == Collective::kMessage) {
      continue;
    }
    INFO(to_string(algorithm.collective) << " by " << algorithm.name);
    const auto row = find_algorithm(algorithm.collective, algorithm.name);
    for (const int size : {2, 5, 16, 17, 100, 1000}) {
      INFO(size << " ranks");
      const Planner planner(of_ranks(size), Costs{}, {});
      double before = 0;
      for (std::size_t bytes = 4096; bytes <= std::size_t{1} << 34; bytes *= 8) {
        const double price = planner.price(row, bytes);
        CHECK(price > 0);
        CHECK(std::isfinite(price));
        // Prices for more ranks are extrapolated, by rules that may differ from size to size.
        if (size <= 16) CHECK(price >= 0.99 * before);
        before = price;
      }
    }
  }
}

TEST_CASE("extrapolated prices of many ranks grow with the number of rounds") {
  Costs costs;
  costs.local.latency_us = 5;
  const auto ring = find_algorithm(Collective::kAllReduce, "ring");
  const auto doubling = find_algorithm(Collective::kAllReduce, "recursive_doubling");
  const auto price = [&](int size, std::uint8_t row) {
    return Planner(of_ranks(size), costs, {}).price(row, 64);
  };
  const auto multiplying = find_algorithm(Collective::kAllReduce, "recursive_multiplying");
  // 2 (n - 1) rounds, log2(n), and log4(n).
  CHECK(price(256, ring) / price(16, ring) == Approx(255.0 / 15).epsilon(0.1));
  CHECK(price(256, doubling) / price(16, doubling) == Approx(2).epsilon(0.1));
  CHECK(price(64, multiplying) / price(16, multiplying) == Approx(1.5).epsilon(0.1));
  CHECK(price(256, multiplying) / price(16, multiplying) == Approx(2).epsilon(0.1));
}

TEST_CASE("a measured choice takes precedence over a price if it is a candidate") {
  Planner planner(of_ranks(4), kFarAway,
                  TuningTable::parse("all_reduce 4 tcp 64 ring\n"
                                     "all_reduce 4 tcp 65536 two_shot\n"
                                     "all_reduce 8 tcp 64 double_tree\n",
                                     "here"));
  CHECK(chosen(planner, Collective::kAllReduce, 8) == "ring");
  CHECK(chosen(planner, Collective::kAllReduce, 1 << 20) == "two_shot");
  CHECK(algorithm_name(planner.choose(Collective::kAllReduce, 8, RankOrder::kFold)) != "ring");
  // Also between two powers of two.
  Planner close(
      of_ranks(4), kFarAway,
      TuningTable::parse("all_reduce 4 tcp 1100 ring\nall_reduce 4 tcp 2000 two_shot\n", "here"));
  CHECK(chosen(close, Collective::kAllReduce, 1024) == "ring");
  CHECK(chosen(close, Collective::kAllReduce, 2000) == "two_shot");
  CHECK(chosen(close, Collective::kAllReduce, 1400) == "ring");
  CHECK(chosen(close, Collective::kAllReduce, 1500) == "two_shot");
}

TEST_CASE("costs survive the conversion to text and back, bit for bit") {
  Costs costs;
  costs.local = {0.1, 1.0 / 3, 1e-300, 1e22, 5};
  costs.remote = {1e9, 0.7, 0, 0, 2.5e-5};
  costs.switch_us = 1.0 / 7;
  costs.cores = 3;
  CHECK(costs_from(to_text(costs)) == costs);
  CHECK_THROWS_WITH(costs_from("1 2 three"), ContainsSubstring("a different version"));
}

TEST_CASE("all ranks make the same choice, in all communicators of the job") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(1, 2, 3, 5);
  std::mutex mutex;
  std::set<std::vector<std::string>> choices;
  run_ranks(size, transport, [&](Communicator& communicator) {
    Communicator group = communicator.duplicate();
    std::vector<std::string> mine;
    for (std::size_t bytes = 4; bytes <= 1 << 22; bytes = 3 * bytes + 4) {
      for (const Collective collective :
           {Collective::kAllReduce, Collective::kBroadcast, Collective::kAllToAll}) {
        const std::string_view choice = communicator.algorithm(collective, bytes);
        mine.emplace_back(choice);
        expect(group.algorithm(collective, bytes) == choice, "the group chooses as its parent");
        int chosen = 0;
        for (const Prediction& prediction : communicator.predict(collective, bytes)) {
          chosen += prediction.is_chosen ? 1 : 0;
          expect(prediction.is_chosen == (prediction.algorithm == choice), "one is marked");
          expect(size == 1 || prediction.time_us > 0, "it has a price");
        }
        expect(chosen == 1, "one is chosen");
      }
    }
    const std::lock_guard lock(mutex);
    choices.insert(mine);
  });
  CHECK(choices.size() == 1);
}

TEST_CASE("the probe's traffic is not counted as payload") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(3, transport, [](Communicator& communicator) {
    expect(communicator.statistics().payload_bytes_sent == 0, "nothing was sent");
    expect(communicator.statistics().payload_bytes_received == 0, "nothing was received");
    communicator.barrier();
  });
}

}  // namespace kolo::test
