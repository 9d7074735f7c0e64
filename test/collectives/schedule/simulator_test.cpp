// Simulator clock: simulated times equal times worked out by hand.
#include "collectives/schedule/simulator.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/server_plan.h"
#include "test/support/catch.h"

namespace kolo {
namespace {

std::vector<Schedule> program_of(Collective collective, std::string_view algorithm, int size,
                                 bool can_answer = false) {
  std::vector<Schedule> program;
  for (int rank = 0; rank < size; ++rank) {
    PlanRequest request;
    request.ranks.rank = rank;
    request.ranks.size = size;
    request.ranks.can_answer = can_answer;
    program.push_back(algorithms()[find_algorithm(collective, algorithm)].write(request));
  }
  return program;
}

constexpr Costs kLatencyOnly{{1.0}, {1.0}, 0.0, 0.0, 0.0};
constexpr Costs kBytesOnly{{0.0}, {0.0}, 0.0, 1.0, 2.0};

SimulationOptions bytes(std::size_t count, std::size_t segment_bytes) {
  SimulationOptions options;
  options.count = count;
  options.element_bytes = 1;
  options.segment_bytes = segment_bytes;
  return options;
}

}  // namespace

TEST_CASE("with latency as the only cost, the time is the number of hops") {
  const auto hops = [](Collective collective, const char* algorithm, int size) {
    const auto program = program_of(collective, algorithm, size);
    return simulate(program, kLatencyOnly, bytes(static_cast<std::size_t>(size), 64)).total_us;
  };
  for (const int size : {2, 3, 5, 8, 16}) {
    INFO("size " << size);
    int rounds = 0;
    while (1 << rounds < size) ++rounds;
    CHECK(hops(Collective::kAllReduce, "ring", size) == Approx(2 * (size - 1)));
    CHECK(hops(Collective::kAllGather, "ring", size) == Approx(size - 1));
    CHECK(hops(Collective::kBroadcast, "binomial_tree", size) <= rounds);
    CHECK(hops(Collective::kReduce, "binomial_tree", size) <= rounds);
    CHECK(hops(Collective::kScan, "chain", size) == Approx(size - 1));
    CHECK(hops(Collective::kGather, "direct", size) == Approx(1));
  }
}

TEST_CASE("with bytes as the only cost, the time is the busiest rank's copies and reductions") {
  // Each of the two ranks sends 5 bytes (5), reduces 5 (10), and receives 5 (5).
  const auto program = program_of(Collective::kAllReduce, "ring", 2);
  const Simulation two = simulate(program, kBytesOnly, bytes(10, 64));
  CHECK(two.total_us == Approx(20));
  CHECK(two.busy_us == std::vector<double>{20, 20});
  // A root of four sends 100 bytes to two children, and its first child passes them on.
  const auto tree = program_of(Collective::kBroadcast, "binomial_tree", 4);
  const Simulation four = simulate(tree, kBytesOnly, bytes(100, 1000));
  CHECK(four.rank_us[0] == Approx(200));
  CHECK(four.rank_us[2] == Approx(300));
  CHECK(four.total_us == Approx(400));
}

TEST_CASE("segments are pipelined: a chain of ranks takes little longer than one hop") {
  const auto program = program_of(Collective::kScan, "chain", 8);
  const double whole = simulate(program, kBytesOnly, bytes(8000, 8000)).total_us;
  const double streamed = simulate(program, kBytesOnly, bytes(8000, 80)).total_us;
  CHECK(streamed < whole / 4);
}

// Time of an all-reduce or a push_pull of kShared bytes, relative to sending or receiving them
// once.
constexpr std::size_t kShared = 8 << 20;

double passes_of(const std::vector<Schedule>& program) {
  const Costs bandwidth_only{{0.0, 0, 0, 0, 0.5, 0.5}, {}, 0.0, 0.0, 0.0};
  return simulate(program, bandwidth_only, bytes(kShared, 1 << 12)).total_us / kShared;
}

double passes_of(const ServerPlan& plan, int size) {
  std::vector<Schedule> program;
  for (int rank = 0; rank < size; ++rank)
    program.push_back(parameter_server_push_pull(request_of(plan, rank, size)));
  return passes_of(program);
}

std::vector<int> first_ranks(int n) {
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TEST_CASE("with dedicated and smaller servers, all wires are busy: 2n(n - 1) / (n^2 + kn - 2k)") {
  for (const int n : {3, 4, 5, 8}) {
    const double ring = passes_of(program_of(Collective::kAllReduce, "ring", n));
    for (int k = 1; k <= n; ++k) {
      const double split = passes_of(balanced_plan(first_ranks(k), n + k), n + k);
      const double least = 2.0 * n * (n - 1) / (n * n + k * n - 2 * k);
      INFO(n << " workers, " << k << " servers: " << split << ", ring " << ring);
      CHECK(split == Approx(least).epsilon(0.04));
      CHECK(split < ring);
    }
  }
}

TEST_CASE("a server in every rank equals a ring, dedicated ones win from n^2 / (2(n - 1)) on") {
  for (const int n : {4, 8}) {
    const double ring = passes_of(program_of(Collective::kAllReduce, "ring", n));
    CHECK(ring == Approx(2.0 * (n - 1) / n).epsilon(0.04));
    CHECK(passes_of(ServerPlan{true, {}}, n) == Approx(ring).epsilon(0.04));
    for (int k = 1; k <= n; ++k) {
      const double dedicated = passes_of(ServerPlan{false, first_ranks(k)}, n + k);
      INFO(n << " workers, " << k << " servers: " << dedicated << ", ring " << ring);
      CHECK((dedicated < ring) == (2 * k * (n - 1) >= n * n));
    }
  }
}

TEST_CASE("a sender waits for credit") {
  const auto program = program_of(Collective::kGather, "direct", 2);
  SimulationOptions options = bytes(200, 1);
  const Costs slow_receiver{{10.0}, {10.0}, 1.0, 0.0, 0.0};
  options.credit = 4;
  const double narrow = simulate(program, slow_receiver, options).total_us;
  options.credit = 64;
  const double wide = simulate(program, slow_receiver, options).total_us;
  CHECK(narrow > 2 * wide);
}

TEST_CASE("ranks that share cores alternate, and each context switch has a cost") {
  const auto program = program_of(Collective::kReduceScatter, "direct", 4);
  Costs costs{{0.0}, {0.0}, 1.0, 0.0, 0.0};
  const auto total = [&] { return simulate(program, costs, bytes(4, 64)).total_us; };
  const Simulation free = simulate(program, costs, bytes(4, 64));
  const double work = std::accumulate(free.busy_us.begin(), free.busy_us.end(), 0.0);
  costs.cores = 4;
  CHECK(total() == Approx(free.total_us));
  costs.cores = 2;
  CHECK(total() >= work / 2);
  CHECK(total() < work);
  costs.cores = 1;
  CHECK(total() == Approx(work));
  // at least 7 switches: every rank runs and waits, and all but one run again
  costs.switch_us = 10;
  CHECK(total() >= work + 6 * 10);
  CHECK(total() <= work + work * 10);
}

TEST_CASE("a core visits its ranks in turn, ready or not") {
  Costs costs{{0.0}, {0.0}, 1.0, 0.0, 0.0};
  costs.cores = 1;
  costs.switch_us = 10;
  const auto total = [&](Collective collective) {
    return simulate(program_of(collective, "chain", 4), costs, bytes(4, 64)).total_us;
  };
  // From rank 0 on, the next rank is always the next to run. Towards rank 0, it is always the last.
  const double work = 2 * 1 + 2 * 1;
  CHECK(total(Collective::kBroadcast) == Approx(work + 3 * 10));
  CHECK(total(Collective::kReduce) == Approx(work + 4 * 3 * 10));
}

TEST_CASE("transfers to another host use the remote costs") {
  const auto program = program_of(Collective::kScan, "chain", 6);
  const Costs costs{{1.0}, {100.0}, 0.0, 0.0, 0.0};
  SimulationOptions options = bytes(6, 64);
  const auto total = [&](std::vector<int> hosts) {
    options.hosts = hosts;
    return simulate(program, costs, options).total_us;
  };
  CHECK(total({}) == Approx(5));
  CHECK(total({0, 0, 0, 1, 1, 1}) == Approx(104));
  CHECK(total({0, 1, 0, 1, 0, 1}) == Approx(500));
}

TEST_CASE("each host has its own cores") {
  const auto program = program_of(Collective::kReduceScatter, "direct", 4);
  Costs costs{{0.0}, {0.0}, 1.0, 0.0, 0.0};
  costs.cores = 2;
  SimulationOptions options = bytes(4, 64);
  const std::vector<int> hosts = {0, 1, 0, 1};
  options.hosts = hosts;
  const double shared = simulate(program, costs, options).total_us;
  costs.cores = 0;
  CHECK(shared == Approx(simulate(program, costs, options).total_us));
}

TEST_CASE("every algorithm ends, and its events and passages have valid times") {
  for (const Algorithm& algorithm : algorithms()) {
    if (has_servers(algorithm.collective) || algorithm.collective == Collective::kMessage) {
      continue;  // they need more than a size
    }
    for (const int size : {1, 2, 3, 6, 8}) {
      for (const bool can_answer : {false, true}) {
        INFO(to_string(algorithm.collective) << " by " << algorithm.name << ", size " << size);
        const auto program = program_of(algorithm.collective, algorithm.name, size, can_answer);
        const Simulation played = simulate(program, Costs{}, bytes(24'000, 1000));
        CHECK(played.rank_us.size() == static_cast<std::size_t>(size));
        CHECK(std::all_of(played.events.begin(), played.events.end(), [&](const Event& event) {
          return event.begin_us >= 0 && event.end_us > event.begin_us &&
                 event.end_us <= played.total_us;
        }));
        CHECK(std::all_of(
            played.passages.begin(), played.passages.end(),
            [](const Passage& passage) { return passage.arrived_us > passage.sent_us; }));
        SimulationOptions quietly = bytes(24'000, 1000);
        quietly.keeps_events = false;
        CHECK(simulate(program, Costs{}, quietly).total_us == played.total_us);
      }
    }
  }
}

TEST_CASE("a schedule that never ends is refused") {
  auto program = program_of(Collective::kAllReduce, "ring", 3);
  program[1].steps.clear();
  CHECK_THROWS_WITH(simulate(program, Costs{}, bytes(30, 10)), ContainsSubstring("never ends"));
}

}  // namespace kolo
