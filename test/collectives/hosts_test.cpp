// Several hosts simulated on one machine: communicators know the hosts of the ranks and take the
// best transport of each pair, hierarchical algorithms give right results, and they send no more
// bytes between hosts than their formulas say.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collectives/algorithms/hierarchical.h"
#include "collectives/executor/call_header.h"
#include "test/collectives/support/processes.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using Hosts = std::vector<int>;
using Integers = std::vector<std::int32_t>;

constexpr auto kType = ElementType::kInt32;
constexpr CallOptions kHierarchical{.algorithm = "hierarchical"};

// Runs ranks as threads. Each rank counts as being on the given host.
void run_on(const Hosts& hosts, const CommunicatorBody& body) {
  const int size = static_cast<int>(hosts.size());
  const auto outcomes = run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.segment_bytes = 256;
    options.host_id = "host-" + std::to_string(hosts[static_cast<std::size_t>(rank)]);
    Communicator communicator(rank, size, store, options);
    body(communicator);
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.text == "");
  }
}

Hosts hosts_of(const Communicator& communicator) {
  const auto hosts = communicator.hosts();
  return {hosts.begin(), hosts.end()};
}

// Element i of `rank`; its sums stay small.
Integers data_of(int rank, std::size_t count) {
  Integers data(count);
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = static_cast<std::int32_t>(i % 1000) * (rank + 1) + rank;
  }
  return data;
}

Integers sum_of(int size, std::size_t count) {
  Integers sum(count);
  for (int rank = 0; rank < size; ++rank) {
    const Integers data = data_of(rank, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += data[i];
  }
  return sum;
}

Integers chunk_of(const Integers& all, int size, int rank) {
  const auto at = [&](int chunk) {
    return all.begin() + static_cast<std::ptrdiff_t>(chunk_begin(all.size(), size, chunk));
  };
  return {at(rank), at(rank + 1)};
}

// Every hierarchical algorithm once; all_reduce also in place.
void run_all(Communicator& world, std::size_t count, int root) {
  const int rank = world.rank();
  const int size = world.size();
  const Integers in = data_of(rank, count);
  const Integers sum = sum_of(size, count);
  Integers out(count, -1);
  world.all_reduce({in.data(), count, kType}, {out.data(), count, kType}, ReduceOp::kSum,
                   kHierarchical);
  expect(out == sum, "all_reduce");
  out = in;
  world.all_reduce({out.data(), count, kType}, ReduceOp::kSum, kHierarchical);
  expect(out == sum, "all_reduce in place");
  out = in;
  world.reduce({out.data(), count, kType}, root, ReduceOp::kSum, kHierarchical);
  expect(rank != root || out == sum, "reduce");
  out = in;
  world.broadcast({out.data(), count, kType}, root, kHierarchical);
  expect(out == data_of(root, count), "broadcast");
  Integers chunk(chunk_count(count, size, rank));
  world.reduce_scatter({in.data(), count, kType},
                       {chunk.data(), chunk_count(count, world.size(), world.rank()), kType},
                       ReduceOp::kSum, kHierarchical);
  expect(chunk == chunk_of(sum, size, rank), "reduce_scatter");
  out.assign(count, -1);
  world.all_gather({chunk.data(), chunk_count(count, world.size(), world.rank()), kType},
                   {out.data(), count, kType}, kHierarchical);
  expect(out == sum, "all_gather");
  world.barrier(kHierarchical);
}

}  // namespace

TEST_CASE("hierarchical algorithms give right results between hosts of all shapes") {
  const auto hosts = GENERATE(Hosts{0, 0, 1, 1}, Hosts{0, 1, 0, 1, 1}, Hosts{0, 0, 0, 1},
                              Hosts{0, 1, 2}, Hosts{0, 0, 1, 1, 2, 2, 2}, Hosts{0, 1, 2, 0, 1, 2});
  for (const std::size_t count : {std::size_t{0}, hosts.size() - 1, std::size_t{5000}}) {
    run_on(hosts, [&](Communicator& world) {
      expect(hosts_of(world) == hosts, "hosts");
      const bool has_neighbours = hosts != Hosts{0, 1, 2};
      expect(world.transport() == (has_neighbours ? "shm+tcp" : "tcp"),
             "auto chooses shared memory within a host and the network between hosts");
      run_all(world, count, static_cast<int>(hosts.size()) / 2);
    });
  }
}

TEST_CASE("every algorithm gives the same sums where some pairs share memory and some do not") {
  const auto hosts = GENERATE(Hosts{0, 0, 1, 1}, Hosts{0, 1, 1, 1, 0}, Hosts{0, 0, 0, 1});
  const int size = static_cast<int>(hosts.size());
  run_on(hosts, [&](Communicator& world) {
    for (const std::string_view name : algorithm_names(Collective::kAllReduce)) {
      if (name == "recursive_multiplying" && size == 5) continue;
      for (const std::size_t count : {std::size_t{3}, std::size_t{5000}}) {
        Integers data = data_of(world.rank(), count);
        world.all_reduce({data.data(), count, kType}, ReduceOp::kSum, {.algorithm = name});
        expect(data == sum_of(size, count), name);
      }
    }
    Integers planned = data_of(world.rank(), 70'000);  // the planner's choice is every rank's
    world.all_reduce({planned.data(), planned.size(), kType}, ReduceOp::kSum);
    expect(planned == sum_of(size, planned.size()), "the planner's choice");
    const int next = (world.rank() + 1) % size;
    const int last = (world.rank() + size - 1) % size;
    Integers came(3000);
    const Integers mine = data_of(world.rank(), 3000);
    auto sent = world.send_async(mine, next);
    world.receive(came, last);
    sent.wait();
    expect(came == data_of(last, 3000), "messages");
  });
}

TEST_CASE("averages of 16-bit floats have the same bits on all ranks of all hosts") {
  const auto hosts = GENERATE(Hosts{0, 0, 1, 1, 1}, Hosts{0, 1, 0, 1, 2, 2}, Hosts{0, 1});
  constexpr std::size_t kCount = 3001;
  run_on(hosts, [&](Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    std::mt19937 random(static_cast<unsigned>(rank));
    // Both signs and all exponents from 2^-15 to 2^16, as bfloat16: the sums must round.
    std::vector<std::uint16_t> data(kCount);
    for (auto& bits : data) bits = static_cast<std::uint16_t>((112 << 7) + random() % (32 << 7));
    for (auto& bits : data) bits = static_cast<std::uint16_t>(bits | (random() % 2) << 15);
    world.all_reduce({data.data(), kCount, ElementType::kBFloat16}, ReduceOp::kAverage,
                     kHierarchical);
    std::vector<std::uint16_t> all(kCount * hosts.size());
    world.all_gather(data, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect(all[i] == all[i % kCount], [&] { return "element " + std::to_string(i % kCount); });
    }
  });
}

TEST_CASE("no more bytes leave a host than the formula says") {
  const auto hosts = GENERATE(Hosts{0, 1, 0, 1}, Hosts{0, 1, 1, 0, 2, 2, 1});
  constexpr std::size_t kCount = 12'000;
  run_on(hosts, [&](Communicator& world) {
    Integers data(kCount, 1);
    const auto sent = [&] { return world.statistics().bytes_sent_to_other_hosts; };
    const auto before = sent();
    world.all_reduce({data.data(), kCount, kType}, ReduceOp::kSum, kHierarchical);
    const ScheduleRequest request{.rank = world.rank(), .size = world.size(), .hosts = hosts};
    const std::size_t elements = hierarchical_all_reduce_traffic(request, kCount).across;
    // Every rank of a lane sends to one other host, with one header that announces the call.
    const std::size_t expected = elements == 0 ? 0 : 4 * elements + kHeaderSegmentBytes;
    expect(sent() - before == expected,
           std::to_string(sent() - before) + " bytes, not " + std::to_string(expected));
  });
}

TEST_CASE("groups know the hosts of their own ranks") {
  run_on({0, 1, 0, 2, 1}, [](Communicator& world) {
    const Hosts all = hosts_of(world);
    auto reversed = world.split(0, -world.rank());
    expect(hosts_of(*reversed) == Hosts{0, 1, 2, 0, 2}, "numbers follow the group's order");
    auto twin = world.duplicate();
    expect(hosts_of(twin) == all, "a duplicate has its parent's hosts");
    auto neighbours = world.split(world.hosts()[static_cast<std::size_t>(world.rank())]);
    const auto size = static_cast<std::size_t>(neighbours->size());
    expect(hosts_of(*neighbours) == Hosts(size, 0), "one host");
    run_all(*reversed, 100, 1);
    run_all(*neighbours, 100, 0);
    std::vector<int> some{4, 1, 3};
    if (std::ranges::find(some, world.rank()) == some.end()) return;
    auto subset = world.subset(some);
    expect(hosts_of(subset) == Hosts{0, 0, 1}, "a subset's hosts");
    run_all(subset, 100, 2);
  });
}

TEST_CASE("ranks of one process are on one host unless their host_id differs") {
  run_ranks(3, "inproc", [](Communicator& world) {
    expect(hosts_of(world) == Hosts{0, 0, 0}, "one host");
    run_all(world, 1000, 2);
    expect(world.statistics().bytes_sent_to_other_hosts == 0, "there is no other host");
  });
}

TEST_CASE("an invalid host name is refused") {
  CommunicatorOptions options;
  options.host_id = "two words";
  const RankOutcome outcome = outcome_of([&] { Communicator(0, 1, make_local_store(), options); });
  CHECK(outcome.is_bug);
  CHECK_THAT(outcome.text, ContainsSubstring("'two words'"));
}

TEST_CASE("processes on two simulated hosts reduce over the network") {
  constexpr int kSize = 4;
  constexpr std::size_t kCount = 100'000;
  const auto outcomes = run_processes(kSize, {KOLO_MULTI_HOST_RANK, std::to_string(kCount)},
                                      {"red", "red", "blue", "blue"});
  // Each host sends its sum, half of it from each rank.
  const std::string bytes = std::to_string(4 * kCount / 2 + kHeaderSegmentBytes);
  for (const ProcessOutcome& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.output == "over shm+tcp on hosts 0 0 1 1: " + bytes + " bytes to other hosts\n");
  }
}

TEST_CASE("a process that asks for shared memory between hosts gets an error") {
  const auto outcomes = run_processes(
      2, {"/usr/bin/env", "KOLO_TRANSPORT=shm", KOLO_MULTI_HOST_RANK, "1"}, {"red", "blue"});
  for (const ProcessOutcome& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.exit_code == 3);
    CHECK_THAT(outcome.output, ContainsSubstring("rank 0 counts as host 'red', rank 1 as host "
                                                 "'blue' (KOLO_HOST_ID), and shm does not reach"));
  }
}

}  // namespace kolo::test
