// Proofs of the first algorithms for every size from 1 to 64: right result, no deadlock at the
// smallest credit, exact byte counts.
#include "collectives/schedule/checker.h"

#include <stdexcept>
#include <vector>

#include "collectives/algorithms/binomial_tree.h"
#include "collectives/algorithms/chain.h"
#include "collectives/algorithms/direct.h"
#include "collectives/algorithms/dissemination.h"
#include "collectives/algorithms/pairwise.h"
#include "collectives/algorithms/parameter_server.h"
#include "collectives/algorithms/ring.h"
#include "collectives/server_plan.h"
#include "test/collectives/algorithms/proof.h"
#include "test/support/catch.h"

namespace kolo {
namespace {

using namespace test;

TEST_CASE("ring all-reduce is proved for 1 to 64 ranks") {
  for (const bool can_answer : {false, true}) {
    prove_all_sizes(can_answer, ring_all_reduce, ring_all_reduce_sent);
  }
}

TEST_CASE("ring reduce-scatter is proved for 1 to 64 ranks") {
  prove_all_sizes(false, ring_reduce_scatter, ring_reduce_scatter_sent);
}

TEST_CASE("ring all-gather is proved for 1 to 64 ranks") {
  prove_all_sizes(false, ring_all_gather, ring_all_gather_sent);
}

TEST_CASE("binomial-tree broadcast is proved for 1 to 64 ranks and every kind of root") {
  for (int size = 1; size <= kLargestSize; ++size) {
    for (const int root : {0, size / 3, size - 1}) {
      const auto program = program_of(size, root, false, binomial_tree_broadcast);
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}}) {
        prove(program, counting(count, root), [&](int rank, int n, std::size_t elements) {
          return binomial_tree_broadcast_sent(rank, n, root, elements);
        });
      }
    }
  }
}

TEST_CASE("binomial-tree reduce is proved for 1 to 64 ranks and every kind of root") {
  prove_all_roots(binomial_tree_reduce, [](int rank, int, int root, std::size_t count) {
    return binomial_tree_reduce_sent(rank, root, count);
  });
}

TEST_CASE("binomial-tree gather and scatter are proved for 1 to 64 ranks") {
  prove_all_roots(binomial_tree_gather, binomial_tree_gather_sent);
  prove_all_roots(binomial_tree_scatter, binomial_tree_scatter_sent);
}

TEST_CASE("direct gather and scatter are proved for 1 to 64 ranks") {
  prove_all_roots(direct_gather, [](int rank, int size, int root, std::size_t count) {
    return direct_gather_sent(rank, root, chunk_count(count, size, rank));
  });
  prove_all_roots(direct_scatter, [](int rank, int size, int root, std::size_t count) {
    return direct_scatter_sent(rank, root, chunk_count(count, size, root), count);
  });
}

TEST_CASE("scans along a chain are proved for 1 to 64 ranks") {
  prove_all_sizes(false, chain_scan, chain_scan_sent);
  prove_all_sizes(false, chain_exclusive_scan, chain_scan_sent);
}

// Lengths that differ from rank to rank and from chunk to chunk, some of them 0.
std::size_t uneven(int a, int b) { return static_cast<std::size_t>((a * 7 + b * 3 + a * b) % 5); }

// The lengths that each rank knows in an all_to_all: those it sends, then those it receives.
std::vector<std::vector<std::size_t>> uneven_exchange(int size) {
  std::vector<std::vector<std::size_t>> lengths;
  for (int rank = 0; rank < size; ++rank) {
    auto& mine = lengths.emplace_back();
    for (int peer = 0; peer < size; ++peer) mine.push_back(uneven(rank, peer));
    for (int peer = 0; peer < size; ++peer) mine.push_back(uneven(peer, rank));
  }
  return lengths;
}

TEST_CASE("straight all-to-all is proved for 1 to 64 ranks, even and uneven") {
  const auto write = GENERATE(pairwise_all_to_all, direct_all_to_all);
  for (int size = 1; size <= kLargestSize; ++size) {
    const auto program = program_of(size, 0, false, write);
    for (const std::size_t share : kShares) {
      CheckOptions options = counting(share * static_cast<std::size_t>(size));
      const CheckReport report = check(program, options);
      INFO("size " << size << ", share " << share);
      REQUIRE(report.fault == "");
      for (const std::size_t sent : report.sent) {
        REQUIRE(sent == pairwise_all_to_all_sent(options.count, share));
      }
    }
    CheckOptions options;
    options.lengths = uneven_exchange(size);
    const CheckReport report = check(program, options);
    INFO("size " << size << ", uneven");
    REQUIRE(report.fault == "");
    for (int rank = 0; rank < size; ++rank) {
      std::size_t gives = 0;
      for (int peer = 0; peer < size; ++peer) gives += uneven(rank, peer);
      REQUIRE(report.sent[static_cast<std::size_t>(rank)] ==
              pairwise_all_to_all_sent(gives, uneven(rank, rank)));
    }
  }
}

TEST_CASE("chunks of any lengths are proved for 1 to 64 ranks") {
  for (int size = 1; size <= kLargestSize; ++size) {
    std::vector<std::size_t> lengths;
    for (int chunk = 0; chunk < size; ++chunk) lengths.push_back(uneven(chunk, size));
    CheckOptions options;
    options.root = size / 2;
    options.lengths.assign(static_cast<std::size_t>(size), lengths);
    for (const Write& write : {Write(ring_reduce_scatter), Write(ring_all_gather),
                               Write(direct_gather), Write(direct_scatter)}) {
      for (const bool is_in_place : {false, true}) {
        options.is_in_place = is_in_place;
        INFO("size " << size << ", in place " << is_in_place);
        REQUIRE(check(program_of(size, options.root, false, write), options).fault == "");
      }
    }
  }
}

TEST_CASE("dissemination barrier is proved for 1 to 64 ranks") {
  for (int size = 1; size <= kLargestSize; ++size) {
    const auto program = program_of(size, 0, false, dissemination_barrier);
    const CheckReport report = check(program, counting(kBarrierCount));
    INFO("size " << size);
    REQUIRE(report.fault == "");
    for (const std::size_t sent : report.sent) {
      REQUIRE(sent == static_cast<std::size_t>(dissemination_barrier_sent(size)));
    }
  }
}

std::vector<Schedule> servers_and_workers(ParameterServerRequest request) {
  std::vector<Schedule> program;
  for (request.rank = 0; request.rank < request.size; ++request.rank) {
    program.push_back(parameter_server_push_pull(request));
  }
  return program;
}

void prove_parameter_server(ParameterServerRequest request) {
  const std::vector<Schedule> program = servers_and_workers(request);
  CheckOptions options;
  options.has_update = request.has_update;
  options.servers = request.servers;
  if (request.servers_work) options.servers.resize(static_cast<std::size_t>(request.dedicated));
  for (const std::size_t count : awkward_counts(program.front().chunks)) {
    options.count = count;
    prove(program, options, [&](int rank, int, std::size_t elements) {
      request.rank = rank;
      return parameter_server_sent(request, elements);
    });
  }
}

std::vector<int> first_ranks(int n) {
  std::vector<int> ranks;
  for (int rank = 0; rank < n; ++rank) ranks.push_back(rank);
  return ranks;
}

TEST_CASE("a dedicated parameter server is proved for 1 to 64 workers") {
  for (int workers = 1; workers <= kLargestSize; ++workers) {
    for (const bool can_answer : {false, true}) {
      for (const bool has_update : {false, true}) {
        prove_parameter_server({.size = workers + 1,
                                .can_answer = can_answer,
                                .has_update = has_update,
                                .servers = {workers / 2}});
      }
    }
  }
}

TEST_CASE("sharded parameter servers are proved for 2 to 64 ranks") {
  for (int size = 3; size <= kLargestSize; ++size) {
    for (const int servers : {2, size / 2, size - 1}) {
      for (const bool can_answer : {false, true}) {
        prove_parameter_server({.size = size,
                                .can_answer = can_answer,
                                .has_update = true,
                                .servers = first_ranks(servers)});
      }
    }
  }
}

TEST_CASE("a parameter server in every rank is proved for 1 to 64 ranks") {
  for (int size = 1; size <= kLargestSize; ++size) {
    for (const bool can_answer : {false, true}) {
      for (const bool has_update : {false, true}) {
        prove_parameter_server({.size = size,
                                .can_answer = can_answer,
                                .has_update = has_update,
                                .servers = first_ranks(size),
                                .servers_work = true});
      }
    }
  }
}

// `servers` dedicated servers, which are the first ranks, and smaller ones in all workers.
ParameterServerRequest balanced(int size, int servers) {
  return request_of(balanced_plan(first_ranks(servers), size), 0, size);
}

TEST_CASE("dedicated servers with smaller ones in the workers are proved for 2 to 8 workers") {
  for (int workers = 2; workers <= 8; ++workers) {
    for (int servers = 1; servers < workers; ++servers) {
      for (const bool can_answer : {false, true}) {
        ParameterServerRequest request = balanced(workers + servers, servers);
        request.can_answer = can_answer;
        request.has_update = can_answer != (servers % 2 == 0);
        request.in_rank_order = servers == 2;
        prove_parameter_server(request);
      }
    }
  }
}

TEST_CASE("servers of a balanced plan and workers send the same, 2n(n - 1) / (n^2 + kn - 2k)") {
  for (std::size_t n = 3; n <= 8; ++n) {
    for (std::size_t k = 1; k < n; ++k) {
      const std::size_t parts = n * n + k * n - 2 * k;
      const auto size = static_cast<int>(n + k);
      ParameterServerRequest request = balanced(size, static_cast<int>(k));
      INFO(n << " workers, " << k << " servers");
      for (request.rank = 0; request.rank < size; ++request.rank)
        REQUIRE(parameter_server_sent(request, parts) == 2 * n * (n - 1));
    }
  }
}

TEST_CASE("a server's share has its chunks' elements") {
  for (const std::size_t count : {0, 1, 5, 100, 997}) {
    for (int servers = 0; servers <= 4; ++servers) {
      const ServerPlan plan = balanced_plan(first_ranks(servers), servers + 4);
      std::size_t begin = 0;
      for (int rank = 0; rank < servers + 4; ++rank) {
        const ServerShare share = share_of(plan, rank, servers + 4, count);
        const Schedule schedule = parameter_server_push(request_of(plan, rank, servers + 4));
        const ChunkRange& held = schedule.output;
        REQUIRE(share.count == chunk_begin(count, schedule.chunks, held.first + held.count) -
                                   chunk_begin(count, schedule.chunks, held.first));
        if (held.count > 0) REQUIRE(share.begin == begin);
        begin += share.count;
      }
      REQUIRE(begin == count);
    }
  }
}

TEST_CASE("servers keep the rank order if asked to, for 1 to 64 ranks") {
  for (int size = 1; size <= kLargestSize; ++size) {
    for (const bool can_answer : {false, true}) {
      const ParameterServerRequest request{.size = size,
                                           .can_answer = can_answer,
                                           .has_update = can_answer && size % 2 == 0,
                                           .servers = first_ranks(size),
                                           .servers_work = true,
                                           .in_rank_order = true};
      prove_parameter_server(request);
      CheckOptions options = counting(static_cast<std::size_t>(size));
      options.has_update = request.has_update;
      REQUIRE(check(servers_and_workers(request), options).is_rank_ordered());
    }
  }
  // A dedicated server always keeps the order.
  CheckOptions options = counting(5);
  options.servers = {1};
  REQUIRE(check(servers_and_workers({.size = 5, .servers = {1}}), options).is_rank_ordered());
}

TEST_CASE("impossible server plans are refused") {
  REQUIRE_THROWS_AS(parameter_server_push_pull({.size = 2, .servers = {}}), std::invalid_argument);
  REQUIRE_THROWS_AS(parameter_server_push_pull({.size = 2, .servers = {0, 0}}),
                    std::invalid_argument);
  REQUIRE_THROWS_AS(parameter_server_push_pull({.size = 2, .servers = {2}}), std::invalid_argument);
  REQUIRE_THROWS_AS(parameter_server_push_pull({.size = 2, .servers = {-1}}),
                    std::invalid_argument);
  REQUIRE_THROWS_AS(parameter_server_push_pull({.size = 2, .servers = {0, 1}}),
                    std::invalid_argument);
  REQUIRE_THROWS_AS(parameter_server_push_pull({.size = 2, .servers = {0}, .servers_work = true}),
                    std::invalid_argument);
  REQUIRE_THROWS_AS(parameter_server_push_pull(
                        {.size = 2, .servers = {0, 1}, .servers_work = true, .dedicated = 2}),
                    std::invalid_argument);
  for (const std::vector<int>& parts : {std::vector{1}, {0, 1}, {-1, 2}, {1, 1, 1}, {1, 1 << 15}}) {
    REQUIRE_THROWS_AS(parameter_server_push_pull({.size = 3, .servers = {0, 1}, .parts = parts}),
                      std::invalid_argument);
  }
  REQUIRE_THROWS_AS(balanced_plan({0, 1}, 2), std::invalid_argument);
}

}  // namespace
}  // namespace kolo
