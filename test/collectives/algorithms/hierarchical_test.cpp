// Proofs of the hierarchical algorithms for 1 to 64 ranks on hosts of many shapes: the result, the
// elements that every rank sends, and the elements that leave its host.
#include "collectives/algorithms/hierarchical.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/algorithms/dissemination.h"
#include "collectives/algorithms/ring.h"
#include "collectives/schedule/layout.h"
#include "test/collectives/algorithms/proof.h"
#include "test/support/catch.h"

namespace kolo {
namespace {

using namespace test;

using Hosts = std::vector<int>;

// Renumbers hosts in the order of their first ranks.
Hosts numbered(const Hosts& names) {
  std::vector<int> known;
  Hosts hosts;
  for (const int name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    hosts.push_back(static_cast<int>(found - known.begin()));
    if (found == known.end()) known.push_back(name);
  }
  return hosts;
}

Hosts hosts_of(int size, const std::function<int(int rank)>& name) {
  Hosts names;
  for (int rank = 0; rank < size; ++rank) names.push_back(name(rank));
  return numbered(names);
}

struct Shape {
  const char* name;
  std::function<int(int rank, int size)> host;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> table = {
      {"one host", [](int, int) { return 0; }},
      {"one rank on every host", [](int rank, int) { return rank; }},
      {"two halves", [](int rank, int size) { return 2 * rank / size; }},
      {"two hosts in turn", [](int rank, int) { return rank % 2; }},
      {"one rank, and the others", [](int rank, int) { return rank == 0 ? 0 : 1; }},
      {"a third, and the others", [](int rank, int size) { return 3 * rank < size ? 0 : 1; }},
      {"blocks of four", [](int rank, int) { return rank / 4; }},
      {"three hosts in turn", [](int rank, int) { return rank % 3; }},
      {"eight hosts in turn", [](int rank, int) { return rank % 8; }},
      {"one large host and single ranks",
       [](int rank, int size) { return 2 * rank < size ? 0 : rank; }},
  };
  return table;
}

constexpr unsigned kSeed = 20261120;

// A random number of hosts, with the ranks distributed at random.
Hosts random_hosts(int size, std::mt19937& random) {
  const int count = std::uniform_int_distribution<int>(1, size)(random);
  std::uniform_int_distribution<int> host(0, count - 1);
  return hosts_of(size, [&](int) { return host(random); });
}

using TrafficOf = Traffic (*)(const ScheduleRequest& request, std::size_t count);

Traffic barrier_traffic(const ScheduleRequest& request, std::size_t) {
  return hierarchical_barrier_traffic(request);
}

struct Subject {
  Schedule (*write)(const ScheduleRequest& request);
  TrafficOf traffic;
};

constexpr Subject kAllReduce{hierarchical_all_reduce, hierarchical_all_reduce_traffic};
constexpr Subject kBroadcast{hierarchical_broadcast, hierarchical_broadcast_traffic};
constexpr Subject kReduce{hierarchical_reduce, hierarchical_reduce_traffic};
constexpr Subject kReduceScatter{hierarchical_reduce_scatter, hierarchical_reduce_scatter_traffic};
constexpr Subject kAllGather{hierarchical_all_gather, hierarchical_all_gather_traffic};
constexpr Subject kBarrier{hierarchical_barrier, barrier_traffic};

// The elements that each rank sends to other hosts, counted from the steps.
std::vector<std::size_t> sent_across(const std::vector<Schedule>& program, const Hosts& hosts,
                                     std::size_t count) {
  std::vector<std::size_t> sent;
  for (const Schedule& schedule : program) {
    std::size_t elements = 0;
    const auto host = [&](int rank) { return hosts[static_cast<std::size_t>(rank)]; };
    Layout layout;
    layout.split(count, schedule.chunks, schedule.spans);
    for (const Step& step : schedule.steps) {
      if (step.to == kNobody || step.slice != 0 || host(step.to) == host(schedule.rank)) continue;
      elements += layout.length(step.chunk);
    }
    sent.push_back(elements);
  }
  return sent;
}

std::vector<Schedule> program_on(const Subject& subject, const Hosts& hosts, int root) {
  std::vector<Schedule> program;
  const int size = static_cast<int>(hosts.size());
  for (int rank = 0; rank < size; ++rank) {
    program.push_back(subject.write({.rank = rank, .size = size, .root = root, .hosts = hosts}));
  }
  return program;
}

void prove_on(const Subject& subject, const Hosts& hosts, int root, std::size_t count) {
  const int size = static_cast<int>(hosts.size());
  const auto request = [&](int rank) {
    return ScheduleRequest{.rank = rank, .size = size, .root = root, .hosts = hosts};
  };
  const std::vector<Schedule> program = program_on(subject, hosts, root);
  INFO("hosts " << ::Catch::Detail::stringify(hosts) << ", root " << root);
  const auto sent = [&](int rank, int, std::size_t elements) {
    return subject.traffic(request(rank), elements).sent;
  };
  if (size > 20) {
    CheckOptions options = counting(count, root);
    options.segment_elements = 2;
    prove_segment(program, options, sent);
  } else {
    prove(program, counting(count, root), sent);
  }
  std::vector<std::size_t> across;
  for (int rank = 0; rank < size; ++rank) {
    across.push_back(subject.traffic(request(rank), count).across);
  }
  REQUIRE(sent_across(program, hosts, count) == across);
}

// Up to 12 ranks the largest count has enough segments to use up all credit.
std::vector<std::size_t> counts_for(int size) {
  const auto n = static_cast<std::size_t>(size);
  if (size > 20) return {2 * n + 1};
  if (size > 12) return {n - 1, 3 * n + 1};
  return {0, n - 1, 3 * n + 1, 9 * n};
}

// Every shape up to 20 ranks. Above that, two shapes alternate, beside a random one.
std::vector<Hosts> layouts_of(int size, std::mt19937& random) {
  std::vector<Hosts> layouts;
  for (std::size_t i = 0; i < shapes().size(); ++i) {
    if (size > 20 && (i + static_cast<std::size_t>(size)) % (shapes().size() / 2) != 0) continue;
    layouts.push_back(hosts_of(size, [&](int rank) { return shapes()[i].host(rank, size); }));
  }
  layouts.push_back(random_hosts(size, random));
  if (size <= 20) layouts.push_back(random_hosts(size, random));
  std::sort(layouts.begin(), layouts.end());
  layouts.erase(std::unique(layouts.begin(), layouts.end()), layouts.end());
  return layouts;
}

void prove_on_all_hosts(const Subject& subject, bool has_root) {
  CAPTURE(kSeed);
  std::mt19937 random(kSeed);
  for (int size = 1; size <= kLargestSize; ++size) {
    for (const Hosts& hosts : layouts_of(size, random)) {
      for (const std::size_t count : counts_for(size)) {
        const int root = std::uniform_int_distribution<int>(0, size - 1)(random);
        prove_on(subject, hosts, has_root ? root : 0, count);
      }
    }
  }
}

TEST_CASE("hierarchical all-reduce is proved for 1 to 64 ranks on hosts of many shapes") {
  prove_on_all_hosts(kAllReduce, false);
}

TEST_CASE("hierarchical broadcast and reduce are proved for 1 to 64 ranks on such hosts") {
  prove_on_all_hosts(kBroadcast, true);
  prove_on_all_hosts(kReduce, true);
}

TEST_CASE("the hierarchical barrier is proved for 1 to 64 ranks on such hosts") {
  for (int size = 1; size <= kLargestSize; ++size) {
    for (const Shape& shape : shapes()) {
      const Hosts hosts = hosts_of(size, [&](int rank) { return shape.host(rank, size); });
      prove_on(kBarrier, hosts, 0, kBarrierCount);
    }
  }
}

TEST_CASE("hierarchical reduce-scatter and all-gather are proved for 1 to 64 ranks on such hosts") {
  prove_on_all_hosts(kReduceScatter, false);
  prove_on_all_hosts(kAllGather, false);
}

TEST_CASE("hierarchical algorithms are proved for 128 ranks on hosts of 8 and of many sizes") {
  const int size = 128;
  for (const Subject& subject : {kAllReduce, kBroadcast, kReduce, kReduceScatter, kAllGather}) {
    prove_on(subject, hosts_of(size, [](int rank) { return rank / 8; }), 0, 300);
    prove_on(subject, hosts_of(size, [](int rank) { return rank % 7 * (rank % 3); }), 11, 300);
  }
}

TEST_CASE("equal hosts send the least possible data to other hosts") {
  for (const int hosts : {1, 2, 3, 5, 8}) {
    for (const int ranks : {1, 2, 3, 4}) {
      const int size = hosts * ranks;
      const auto share = static_cast<std::size_t>(size);  // a host's share: count / hosts
      const std::size_t count = share * static_cast<std::size_t>(hosts);
      const Hosts layout = hosts_of(size, [&](int rank) { return rank % hosts; });
      const auto leaving = [&](const Subject& subject, int host) {
        std::size_t sum = 0;
        for (int rank = host; rank < size; rank += hosts) {
          sum += subject.traffic({.rank = rank, .size = size, .hosts = layout}, count).across;
        }
        return sum;
      };
      INFO(hosts << " hosts of " << ranks);
      for (int host = 0; host < hosts; ++host) {
        REQUIRE(leaving(kAllReduce, host) == 2 * (count - share));
        REQUIRE(leaving(kReduceScatter, host) == count - share);
        REQUIRE(leaving(kAllGather, host) == count - share);
        REQUIRE(leaving(kReduce, host) == (host == 0 ? 0 : count));
        // The halves of a lane's chunk may differ by one element.
        REQUIRE(leaving(kBroadcast, host) <= count + static_cast<std::size_t>(ranks));
      }
    }
  }
}

TEST_CASE("uneven hosts also send the least possible data in an all-reduce") {
  const Hosts layout{0, 1, 0, 2, 2, 0, 2, 1, 2};  // hosts of 3, 2 and 4 ranks: two lanes
  constexpr std::size_t kCount = 60;
  std::vector<std::size_t> leaving(3);
  const auto sent = sent_across(program_on(kAllReduce, layout, 0), layout, kCount);
  for (std::size_t rank = 0; rank < layout.size(); ++rank) {
    leaving[static_cast<std::size_t>(layout[rank])] += sent[rank];
  }
  REQUIRE(leaving == std::vector<std::size_t>{80, 80, 80});
}

TEST_CASE("a ring whose ranks alternate between hosts sends a multiple of the data between them") {
  const auto sum = [](const std::vector<std::size_t>& sent) {
    return std::accumulate(sent.begin(), sent.end(), std::size_t{0});
  };
  for (const int hosts : {2, 4}) {
    const int size = 4 * hosts;
    const std::size_t count = 5 * static_cast<std::size_t>(size);
    const Hosts in_turn = hosts_of(size, [&](int rank) { return rank % hosts; });
    const Subject ring{ring_all_reduce, nullptr};
    const auto of_ring = sum(sent_across(program_on(ring, in_turn, 0), in_turn, count));
    const auto ours = sum(sent_across(program_on(kAllReduce, in_turn, 0), in_turn, count));
    INFO(hosts << " hosts of 4: " << of_ring << " elements of a ring against " << ours);
    REQUIRE(of_ring >= 4 * ours);
  }
}

TEST_CASE("no rank of equal hosts sends more than in a ring") {
  for (const int hosts : {1, 2, 3, 4}) {
    const int size = 4 * hosts;
    const std::size_t count = 3 * static_cast<std::size_t>(size);
    const Hosts layout = hosts_of(size, [](int rank) { return rank / 4; });
    for (int rank = 0; rank < size; ++rank) {
      const ScheduleRequest request{.rank = rank, .size = size, .hosts = layout};
      REQUIRE(hierarchical_all_reduce_traffic(request, count).sent == 2 * (count - 3));
      REQUIRE(hierarchical_reduce_scatter_traffic(request, count).sent == count - 3);
      REQUIRE(hierarchical_all_gather_traffic(request, count).sent == count - 3);
    }
  }
}

TEST_CASE("chunks of any lengths are proved for the hierarchical reduce-scatter and all-gather") {
  for (int size = 1; size <= 20; ++size) {
    std::vector<std::size_t> lengths;
    for (int chunk = 0; chunk < size; ++chunk) {
      lengths.push_back(static_cast<std::size_t>((chunk * 3 + size) % 5));
    }
    CheckOptions options;
    options.lengths.assign(static_cast<std::size_t>(size), lengths);
    for (const Shape& shape : shapes()) {
      const Hosts hosts = hosts_of(size, [&](int rank) { return shape.host(rank, size); });
      for (const Subject& subject : {kReduceScatter, kAllGather}) {
        INFO("size " << size << ", " << shape.name);
        REQUIRE(check(program_on(subject, hosts, 0), options).fault == "");
      }
    }
  }
}

TEST_CASE("invalid lists of hosts are refused") {
  const auto refused = [](const Hosts& hosts) {
    REQUIRE_THROWS_AS(hierarchical_all_reduce({.size = 3, .hosts = hosts}), std::invalid_argument);
  };
  refused({0, 0});
  refused({0, 1, 3});
  refused({1, 0, 0});
  refused({0, -1, 0});
}

TEST_CASE("the checker finds the faults in a hierarchical all-reduce") {
  const Hosts hosts{0, 0, 1, 1, 2, 2};
  const auto faults = [&](const std::function<void(std::vector<Schedule>&)>& spoil) {
    auto program = program_on(kAllReduce, hosts, 0);
    REQUIRE(check(program, counting(13)).fault == "");
    spoil(program);
    return check(program, counting(13)).fault;
  };
  const auto steps_of = [](std::vector<Schedule>& program, std::size_t rank) -> std::vector<Step>& {
    return program[rank].steps;
  };
  // Leaves out each step of one rank in turn. Every step is necessary.
  for (std::size_t step = 0; step < program_on(kAllReduce, hosts, 0)[3].steps.size(); ++step) {
    INFO("step " << step);
    REQUIRE(faults([&](std::vector<Schedule>& program) {
              auto& steps = steps_of(program, 3);
              steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(step));
            }) != "");
  }
  REQUIRE(faults([&](std::vector<Schedule>& program) {
            for (Step& step : steps_of(program, 2)) step.is_final = false;
          }).find("never declared complete") != std::string::npos);
}

}  // namespace
}  // namespace kolo
