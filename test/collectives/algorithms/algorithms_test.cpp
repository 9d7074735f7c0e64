// Proofs for every size from 1 to 64 of the algorithms that a call can name. checker_test.cpp
// proves the first algorithm of each collective.
#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/algorithms/bidirectional_ring.h"
#include "collectives/algorithms/bruck.h"
#include "collectives/algorithms/chain.h"
#include "collectives/algorithms/direct_reduce.h"
#include "collectives/algorithms/dissemination.h"
#include "collectives/algorithms/double_tree.h"
#include "collectives/algorithms/halving_doubling.h"
#include "collectives/algorithms/knomial_tree.h"
#include "collectives/algorithms/pairwise.h"
#include "collectives/algorithms/recursive_doubling.h"
#include "collectives/algorithms/recursive_multiplying.h"
#include "collectives/algorithms/scatter_allgather.h"
#include "collectives/algorithms/steps.h"
#include "test/collectives/algorithms/proof.h"
#include "test/support/catch.h"

namespace kolo {
namespace {

using namespace test;

TEST_CASE("recursive doubling is proved for 1 to 64 ranks") {
  prove_whole_sizes(recursive_doubling_all_reduce, recursive_doubling_all_reduce_sent);
}

TEST_CASE("recursive multiplying is proved for 1 to 64 ranks") {
  prove_whole_sizes(recursive_multiplying_all_reduce, recursive_multiplying_all_reduce_sent);
}

TEST_CASE("recursive multiplying takes few rounds and few messages for any size") {
  constexpr std::size_t kMessages[] = {0, 1, 2, 3, 4, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 6};
  for (int size = 1; size <= 16; ++size) {
    std::size_t most = 0;
    for (int rank = 0; rank < size; ++rank) {
      most = std::max(most, recursive_multiplying_all_reduce_sent(rank, size, 1));
    }
    INFO(size);
    CHECK(most == kMessages[size - 1]);
  }
  CHECK(recursive_multiplying_all_reduce_hops(12) == 2);
  CHECK(recursive_multiplying_all_reduce_hops(16) == 2);
  CHECK(recursive_multiplying_all_reduce_hops(18) == 3);
  CHECK(recursive_multiplying_all_reduce_hops(64) == 3);
  for (int size = 2; size <= 1024; ++size) {
    const int exchanges = std::bit_width(static_cast<unsigned>(size)) - 1;
    const bool is_even = std::has_single_bit(static_cast<unsigned>(size));
    INFO(size);
    CHECK(recursive_multiplying_all_reduce_hops(size) <= (exchanges + 1) / 2 + (is_even ? 0 : 2));
  }
}

TEST_CASE("halving and doubling are proved for 1 to 64 ranks") {
  prove_all_sizes(false, recursive_halving_reduce_scatter, recursive_halving_reduce_scatter_sent);
  prove_all_sizes(false, recursive_doubling_all_gather, recursive_doubling_all_gather_sent);
  prove_all_sizes(false, halving_doubling_all_reduce, halving_doubling_all_reduce_sent);
}

TEST_CASE("halving and doubling send the fewest bytes in the fewest rounds for any size") {
  for (int size = 1; size <= kLargestSize; ++size) {
    const auto count = static_cast<std::size_t>(3 * size);
    for (int rank = 0; rank < size; ++rank) {
      INFO("rank " << rank << " of " << size);
      REQUIRE(recursive_halving_reduce_scatter_sent(rank, size, count) == count - 3);
      REQUIRE(recursive_doubling_all_gather_sent(rank, size, count) == count - 3);
    }
  }
}

// The segment length decides which sends the all-gather can leave out.
TEST_CASE("bidirectional rings are proved for 1 to 64 ranks") {
  for (int size = 1; size <= kLargestSize; ++size) {
    const auto reduce_scatter = program_of(size, 0, false, bidirectional_ring_reduce_scatter);
    const auto all_gather = program_of(size, 0, false, bidirectional_ring_all_gather);
    const auto all_reduce = program_of(size, 0, false, bidirectional_ring_all_reduce);
    for (const std::size_t count : awkward_counts(size)) {
      CheckOptions options = counting(count);
      prove(reduce_scatter, options, bidirectional_ring_reduce_scatter_sent);
      for (const std::size_t segment : kSegments) {
        options.segment_elements = segment;
        prove_segment(all_gather, options, [segment](int rank, int n, std::size_t elements) {
          return bidirectional_ring_all_gather_sent(rank, n, elements, segment);
        });
        prove_segment(all_reduce, options, [segment](int rank, int n, std::size_t elements) {
          return bidirectional_ring_all_reduce_sent(rank, n, elements, segment);
        });
      }
    }
  }
}

TEST_CASE("double trees are proved for 1 to 64 ranks and every kind of root") {
  prove_whole_sizes(double_tree_all_reduce, double_tree_all_reduce_sent);
  prove_whole_roots(double_tree_broadcast, double_tree_broadcast_sent);
  prove_whole_roots(double_tree_reduce, [](int rank, int, int root, std::size_t count) {
    return double_tree_reduce_sent(rank, root, count);
  });
}

TEST_CASE("no rank sends more than twice the data in a double tree, or once in a broadcast") {
  for (int size = 1; size <= kLargestSize; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      INFO("rank " << rank << " of " << size);
      REQUIRE(double_tree_all_reduce_sent(rank, size, 100) <= 200);
      REQUIRE(double_tree_broadcast_sent(rank, size, size / 2, 100) <= 100);
    }
  }
}

TEST_CASE("k-nomial trees of radix 2 to 8 are proved for 1 to 64 ranks and every kind of root") {
  for (const int radix : {2, 3, 4, 8}) {
    prove_whole_roots(
        [&](const ScheduleRequest& request) { return knomial_tree_broadcast(request, radix); },
        [&](int rank, int size, int root, std::size_t count) {
          return knomial_tree_broadcast_sent(rank, size, root, radix, count);
        });
    prove_whole_roots(
        [&](const ScheduleRequest& request) { return knomial_tree_reduce(request, radix); },
        [](int rank, int, int root, std::size_t count) {
          return knomial_tree_reduce_sent(rank, root, count);
        });
  }
  REQUIRE_THROWS_AS(knomial_tree_broadcast({.size = 2}, 1), std::invalid_argument);
}

TEST_CASE("broadcast and reduce along a chain are proved for 1 to 64 ranks") {
  prove_whole_roots(chain_broadcast, chain_broadcast_sent);
  prove_whole_roots(chain_reduce, [](int rank, int, int root, std::size_t count) {
    return chain_reduce_sent(rank, root, count);
  });
  prove_whole_roots(ordered_chain_reduce, ordered_chain_reduce_sent);
}

TEST_CASE("a broadcast by scatter and all-gather is proved for 1 to 64 ranks") {
  prove_all_roots(scatter_allgather_broadcast, scatter_allgather_broadcast_sent);
}

TEST_CASE("Bruck's all-to-all is proved for 1 to 64 ranks") {
  for (int size = 1; size <= kLargestSize; ++size) {
    const auto program = program_of(size, 0, false, bruck_all_to_all);
    for (const std::size_t share : kShares) {
      CheckOptions options = counting(share * static_cast<std::size_t>(size));
      options.is_in_place = true;
      REQUIRE(check(program, options).fault == "");
      const CheckReport report = check(program, counting(share * static_cast<std::size_t>(size)));
      INFO("size " << size << ", share " << share);
      REQUIRE(report.fault == "");
      for (const std::size_t sent : report.sent) {
        REQUIRE(sent == bruck_all_to_all_sent(size, share));
      }
    }
  }
}

TEST_CASE("direct reductions are proved for 1 to 64 ranks") {
  prove_whole_sizes(one_shot_all_reduce, one_shot_all_reduce_sent);
  prove_all_sizes(false, two_shot_all_reduce, two_shot_all_reduce_sent);
  prove_all_sizes(false, direct_reduce_scatter, direct_reduce_scatter_sent);
  prove_all_sizes(false, direct_all_gather, direct_all_gather_sent);
}

TEST_CASE("the checker refuses an all-to-all that overwrites unsent chunks, in place only") {
  constexpr int kSize = 5;
  // In step k each rank sends to the rank k places to its right and receives from the one k places
  // to its left.
  auto program = program_of(kSize, 0, false, pairwise_all_to_all);
  for (Schedule& schedule : program) {
    for (int k = 1; k < kSize; ++k) {
      const auto at = static_cast<std::size_t>(2 * (k - 1));
      schedule.steps[at] =
          steps::send((schedule.rank + k) % kSize, steps::input((schedule.rank + k) % kSize));
      const int left = (schedule.rank - k + kSize) % kSize;
      schedule.steps[at + 1] = steps::receive(left, steps::output(kSize + left));
    }
  }
  CheckOptions options = counting(2 * kSize);
  REQUIRE(check(program, options).fault == "");
  options.is_in_place = true;
  REQUIRE(check(program, options).fault != "");
}

TEST_CASE("the other reduce-scatters and all-gathers are proved for chunks of any lengths") {
  for (int size = 1; size <= kLargestSize; ++size) {
    std::vector<std::size_t> lengths;
    for (int chunk = 0; chunk < size; ++chunk) {
      lengths.push_back(static_cast<std::size_t>((chunk * 3 + size) % 5));
    }
    CheckOptions options;
    options.lengths.assign(static_cast<std::size_t>(size), lengths);
    for (const Write& write :
         {Write(recursive_halving_reduce_scatter), Write(recursive_doubling_all_gather),
          Write(bidirectional_ring_reduce_scatter), Write(bidirectional_ring_all_gather),
          Write(direct_reduce_scatter), Write(direct_all_gather)}) {
      for (const bool is_in_place : {false, true}) {
        options.is_in_place = is_in_place;
        const auto program = program_of(size, 0, false, write);
        INFO(program.front().algorithm << ", size " << size << ", in place " << is_in_place);
        REQUIRE(check(program, options).fault == "");
      }
    }
  }
}

// Beyond 128 ranks most chunks are empty. This keeps sizes that large affordable.
CheckOptions options_of(Collective collective, int size) {
  const bool is_large = size > 128;
  CheckOptions options = counting(is_large ? 9 : static_cast<std::size_t>(size) + 2, size / 3);
  options.segment_elements = is_large ? 3 : 40;
  if (collective == Collective::kAllToAll) options.count = static_cast<std::size_t>(size);
  if (collective == Collective::kBarrier) options.count = kBarrierCount;
  return options;
}

TEST_CASE("every algorithm of the table is proved for 128, 255 and 256 ranks") {
  for (const Algorithm& algorithm : algorithms()) {
    const bool is_message = algorithm.collective == Collective::kMessage;  // between two ranks only
    if (is_message || has_servers(algorithm.collective)) continue;
    for (const int size : {128, 255, 256}) {
      if (algorithm.collective == Collective::kAllToAll && size > 128) continue;
      const auto write = [&](const ScheduleRequest& request) {
        return algorithm.write({request, {}});
      };
      const CheckOptions options = options_of(algorithm.collective, size);
      INFO(algorithm.name << ", size " << size);
      REQUIRE(check(program_of(size, options.root, false, write), options).fault == "");
    }
  }
}

// --- the order of operands ---

// A property that the table states must hold for every size and root. A property that it does not
// state must fail for some.
struct Orders {
  bool is_in_order = true;
  bool is_rank_ordered = true;
};

std::vector<int> counting_up(int size, int end) {
  std::vector<int> numbers;
  for (int rank = 0; rank < size; ++rank) numbers.push_back(rank % end);
  return numbers;
}

Orders orders_of(const Algorithm& algorithm) {
  Orders orders;
  for (int size = 1; size <= kLargestSize; ++size) {
    const std::vector<int> alternating = counting_up(size, 2);
    for (const int root : {0, size / 3, size - 1}) {
      if (root > 0 && !has_root(algorithm.collective)) continue;
      for (const std::span<const int> hosts : {std::span<const int>(), std::span(alternating)}) {
        if (!hosts.empty() && size > 20) continue;
        const auto write = [&](const ScheduleRequest& asked) {
          PlanRequest request{asked,
                              {asked.rank, size, false, false, counting_up(size, size), true}};
          request.ranks.hosts = hosts;
          return algorithm.write(request);
        };
        CheckOptions options = counting(static_cast<std::size_t>(size), root);
        options.segment_elements = size > 20 ? options.count : 2;
        const CheckReport report = check(program_of(size, root, false, write), options);
        REQUIRE(report.fault == "");
        orders.is_in_order = orders.is_in_order && report.is_in_order();
        orders.is_rank_ordered = orders.is_rank_ordered && report.is_rank_ordered();
      }
    }
    if (!orders.is_in_order) break;
  }
  return orders;
}

TEST_CASE("reductions keep the order of the ranks exactly where the table says so") {
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_reduction(algorithm.collective)) continue;
    INFO(to_string(algorithm.collective) << " " << algorithm.name);
    const Orders orders = orders_of(algorithm);
    CHECK(orders.is_in_order == algorithm.is_in_order);
    CHECK(orders.is_rank_ordered == algorithm.is_rank_ordered);
  }
}

TEST_CASE("the checker reports swapped operands as out of order") {
  auto program = program_of(4, 0, false, two_shot_all_reduce);
  REQUIRE(check(program, counting(5)).is_rank_ordered());
  for (Step& step : program[2].steps) step.is_in_last = false;
  const CheckReport report = check(program, counting(5));
  REQUIRE(report.is_proved());
  REQUIRE_FALSE(report.is_in_order());
  REQUIRE(report.disorder.find("rank 2") != std::string::npos);
}

// --- faults that the checker must find in such schedules ---

std::string fault_of(std::vector<Schedule> program, const CheckOptions& options) {
  const CheckReport report = check(program, options);
  UNSCOPED_INFO(report.fault);
  return report.fault;
}

TEST_CASE("the checker finds partners that combine in different orders") {
  auto program = program_of(4, 0, false, recursive_doubling_all_reduce);
  for (Step& step : program[3].steps) step.is_in_last = false;
  REQUIRE(fault_of(program, counting(5)).find("a different order") != std::string::npos);
}

TEST_CASE("the checker finds a send that must be a copy and is not") {
  auto program = program_of(4, 0, false, recursive_doubling_all_reduce);
  for (Step& step : program[2].steps) step.is_copied = false;
  REQUIRE(fault_of(program, counting(5)).find("may not have received yet") != std::string::npos);
}

// The fault when rank 1 of 4 reads from the place `to` instead of `from`.
std::string fault_of_taking(Collective collective, std::string_view name, Place from, Place to) {
  const Algorithm& algorithm = algorithms()[find_algorithm(collective, name)];
  auto program = program_of(4, 0, false, [&](const ScheduleRequest& asked) {
    return algorithm.write({asked, {}});
  });
  for (Step& step : program[1].steps) {
    if (step.in.place == from) step.in.place = to;
  }
  CheckOptions options = counting(6);
  options.is_in_place = true;
  return fault_of(program, options);
}

TEST_CASE("the checker finds a contribution that a scaled sum scales twice or never") {
  for (const Algorithm& row : algorithms()) {
    if (row.collective != Collective::kAllReduce) continue;
    INFO(row.name);
    REQUIRE(fault_of_taking(Collective::kAllReduce, row.name, Place::kInput, Place::kOutput)
                .find("leaves a contribution unscaled") != std::string::npos);
  }
  for (const std::string_view name : {"recursive_doubling", "recursive_multiplying", "two_shot"}) {
    INFO(name);
    REQUIRE(fault_of_taking(Collective::kAllReduce, name, Place::kOutput, Place::kInput)
                .find("scales a contribution twice") != std::string::npos);
  }
  auto program = program_of(3, 0, false, chain_scan);
  program[0].steps.pop_back();  // This copy has no effect in place, except in a scaled sum.
  CheckOptions options = counting(5);
  options.is_in_place = true;
  REQUIRE(fault_of(program, options).find("was never scaled") != std::string::npos);
}

}  // namespace
}  // namespace kolo
