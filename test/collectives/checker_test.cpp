// Every algorithm, for every size from 1 to 64: right result, no deadlock at the smallest credit,
// exact byte counts.
#include "collectives/checker.h"

#include <functional>
#include <string>
#include <vector>

#include "collectives/algorithms/binomial_tree.h"
#include "collectives/algorithms/dissemination.h"
#include "collectives/algorithms/parameter_server.h"
#include "collectives/algorithms/ring.h"
#include "test/support/catch.h"

namespace kolo {
namespace {

constexpr int kLargestSize = 64;

using Write = std::function<Schedule(const ScheduleRequest&)>;
using Sent = std::function<std::size_t(int rank, int size, std::size_t count)>;

std::vector<Schedule> program_of(int size, int root, bool can_answer, const Write& write) {
  std::vector<Schedule> program;
  for (int rank = 0; rank < size; ++rank) {
    program.push_back(write({.rank = rank, .size = size, .root = root, .can_answer = can_answer}));
  }
  return program;
}

CheckOptions counting(std::size_t count, int root = 0) {
  CheckOptions options;
  options.count = count;
  options.root = root;
  return options;
}

CheckOptions twelve_segments() {
  CheckOptions options = counting(24);
  options.segment_elements = 2;
  return options;
}

// Counts that are awkward for `size` chunks; with segments of 1 and 2 elements they make one to
// five turns.
std::vector<std::size_t> awkward_counts(int size) {
  const auto n = static_cast<std::size_t>(size);
  if (size > 20) return {n - 1, 3 * n + 1};
  return {0, 1, n - 1, n, n + 1, 3 * n + 1, 5 * n - 1};
}

// Proves it for short and shorter segments, in place and out of place, and holds the elements sent
// against the formula.
void prove(const std::vector<Schedule>& program, CheckOptions options, const Sent& sent) {
  const int size = static_cast<int>(program.size());
  std::vector<std::size_t> expected;
  for (int rank = 0; rank < size; ++rank) expected.push_back(sent(rank, size, options.count));
  for (const std::size_t segment : {1, 2}) {
    for (const bool in_place : {false, true}) {
      options.segment_elements = segment;
      options.is_in_place = in_place;
      const CheckReport report = check(program, options);
      if (!report.is_proved()) {
        FAIL(report.fault << "\n"
                          << describe(program.front()) << "count " << options.count << ", segment "
                          << segment << ", in place " << in_place);
      }
      REQUIRE(report.sent == expected);
    }
  }
}

void prove_all_sizes(bool can_answer, const Write& write, const Sent& sent) {
  for (int size = 1; size <= kLargestSize; ++size) {
    const std::vector<Schedule> program = program_of(size, 0, can_answer, write);
    for (const std::size_t count : awkward_counts(size)) prove(program, counting(count), sent);
  }
}

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

void prove_parameter_server(ParameterServerRequest request) {
  std::vector<Schedule> program;
  for (request.rank = 0; request.rank < request.size; ++request.rank) {
    program.push_back(parameter_server_push_pull(request));
  }
  CheckOptions options;
  options.has_update = request.has_update;
  if (!request.servers_work) options.servers = request.servers;
  for (const std::size_t count : awkward_counts(static_cast<int>(request.servers.size()))) {
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
}

// --- the checker itself: each planted fault is found, and named ---

std::string fault_of(std::vector<Schedule> program,
                     const std::function<void(std::vector<Schedule>&)>& plant,
                     CheckOptions options = twelve_segments()) {
  REQUIRE(check(program, options).fault == "");
  plant(program);
  const CheckReport report = check(program, options);
  REQUIRE_FALSE(report.is_proved());
  return report.fault;
}

bool contains(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

std::vector<Schedule> ring_of(int size) { return program_of(size, 0, false, ring_all_reduce); }

TEST_CASE("swapped chunks are found") {
  const auto fault =
      fault_of(ring_of(4), [](auto& p) { p[1].steps[0].in.chunk = p[1].steps[1].in.chunk = 2; });
  REQUIRE(contains(fault, "reduces element"));
}

TEST_CASE("a missing step is found") {
  const auto fault =
      fault_of(ring_of(4), [](auto& p) { p[2].steps.erase(p[2].steps.begin() + 3); });
  REQUIRE(contains(fault, "rank"));
}

TEST_CASE("a reduction that counts a rank twice is found") {
  const auto fault = fault_of(ring_of(3), [](auto& p) {
    Step again = p[0].steps[4];
    again.kind = StepKind::kReceiveReduce;
    again.out = again.in;
    again.to = kNobody;
    again.is_final = false;
    p[0].steps[4] = again;
  });
  REQUIRE_FALSE(fault.empty());
}

TEST_CASE("a cycle of ranks that all wait first is found as a deadlock") {
  const auto fault = fault_of(ring_of(3), [](auto& p) {
    for (Schedule& schedule : p) {
      std::rotate(schedule.steps.begin(), schedule.steps.begin() + 2, schedule.steps.end());
    }
  });
  REQUIRE(contains(fault, "deadlock"));
}

TEST_CASE("a schedule that needs more credit than there is is found as a deadlock") {
  auto program = ring_of(4);
  REQUIRE(check(program, {.count = 64, .segment_elements = 2, .credit = 4}).fault == "");
  REQUIRE(contains(check(program, {.count = 64, .segment_elements = 2, .credit = 2}).fault,
                   "deadlock"));
}

TEST_CASE("a sum declared complete too early is found") {
  const auto fault = fault_of(ring_of(4), [](auto& p) { p[3].steps[2].is_final = true; });
  REQUIRE(contains(fault, "incomplete sum"));
}

TEST_CASE("an average that is never divided is found") {
  const auto fault = fault_of(ring_of(2), [](auto& p) { p[1].steps[1].is_final = false; });
  REQUIRE(contains(fault, "never declared complete"));
}

TEST_CASE("reading what nobody has written is found") {
  const auto fault = fault_of(ring_of(4), [](auto& p) { p[0].steps[0].in.place = Place::kOutput; });
  REQUIRE(contains(fault, "nobody has written"));
}

TEST_CASE("writing over memory that is still being sent is found") {
  CheckOptions options{.count = 8, .segment_elements = 2, .is_in_place = true};
  auto program = program_of(2, 0, false, ring_all_gather);
  REQUIRE(check(program, options).fault == "");
  for (Schedule& schedule : program) {  // receives land where the own chunk is being sent from
    for (Step& step : schedule.steps) {
      if (step.kind == StepKind::kReceive)
        step.out.chunk = static_cast<std::uint16_t>(schedule.rank);
    }
  }
  REQUIRE(contains(check(program, options).fault, "may not have received yet"));
}

TEST_CASE("a sum stored in the wrong place is found") {
  const auto fault = fault_of(ring_of(4), [](auto& p) {
    p[2].steps.back().out.chunk = p[2].steps[p[2].steps.size() - 2].out.chunk =
        static_cast<std::uint16_t>((p[2].steps.back().out.chunk + 1) % 4);
  });
  REQUIRE_FALSE(fault.empty());
}

TEST_CASE("an answer that never comes, or comes unasked, is found") {
  const auto answered = program_of(2, 0, true, ring_all_reduce);
  REQUIRE(
      contains(fault_of(answered, [](auto& p) { p[0].steps[1].kind = StepKind::kReceiveReduce; }),
               "does not answer"));
  REQUIRE(contains(fault_of(answered, [](auto& p) { p[0].steps[0].kind = StepKind::kSend; }),
                   "expects none"));
}

TEST_CASE("segments that nobody receives are found") {
  const auto fault = fault_of(ring_of(3), [](auto& p) {
    for (Schedule& schedule : p) schedule.steps.resize(schedule.steps.size() - 2);
  });
  REQUIRE(contains(fault, "rank"));
}

TEST_CASE("a barrier that lets somebody go early is found") {
  auto program = program_of(5, 0, false, dissemination_barrier);
  for (Schedule& schedule : program) schedule.steps.resize(4);
  REQUIRE(contains(check(program, counting(kBarrierCount)).fault, "before everybody has come"));
}

TEST_CASE("an update that is skipped or applied twice is found") {
  ParameterServerRequest request{.size = 3, .has_update = true, .servers = {2}};
  std::vector<Schedule> program;
  for (request.rank = 0; request.rank < 3; ++request.rank) {
    program.push_back(parameter_server_push_pull(request));
  }
  const CheckOptions options{.count = 6, .has_update = true, .servers = {2}};
  const auto plant_at_update = [](bool twice) {
    return [twice](auto& p) {
      auto& steps = p[2].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].kind != StepKind::kUpdate) continue;
        const Step update = steps[i];
        if (twice) {
          steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(i), update);
        } else {
          steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
        }
        return;
      }
    };
  };
  REQUIRE(contains(fault_of(program, plant_at_update(false), options), "was not updated"));
  REQUIRE(contains(fault_of(program, plant_at_update(true), options), "updates a sum twice"));
}

}  // namespace
}  // namespace kolo
