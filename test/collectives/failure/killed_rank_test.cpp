// A killed rank: wherever it is killed, in any operation and at any point, all others end within
// moments with one cause that names it.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "test/collectives/support/processes.h"
#include "test/support/catch.h"
#include "test/support/sanitizers.h"
#include "transports/registry.h"

namespace kolo::test {
namespace {

constexpr int kSize = 3;

// A transport, and the environment variables for its path.
struct Way {
  std::string transport;
  std::vector<std::string> variables = {};
  bool starts_slowly = false;  // starting takes half a second, so half of the deaths are enough
};

std::ostream& operator<<(std::ostream& out, const Way& way) {
  out << way.transport;
  for (const std::string& variable : way.variables) out << ' ' << variable;
  return out;
}

bool is_here(const std::string& transport) {
  const auto names = transport_names();
  return std::ranges::find(names, transport) != names.end() && why_unusable(transport).empty();
}

// Kolo's own transports, and those over external libraries that are here. Sanitizers do not
// instrument the latter.
std::vector<Way> ways() {
  std::vector<Way> ways = {{"shm"}, {"tcp"}};
  const std::vector<Way> borrowed = {
      {"ucx", {"UCX_TLS=tcp"}}, {"ucx", {"UCX_TLS=posix,self"}}, {"ofi", {}, true}};
  std::ranges::copy_if(borrowed, std::back_inserter(ways),
                       [](const Way& way) { return !kIsSanitized && is_here(way.transport); });
  return ways;
}

std::vector<ProcessOutcome> run_over(const Way& way, int victim, int operation, int polls) {
  std::vector<std::string> command = {"/usr/bin/env"};
  command.insert(command.end(), way.variables.begin(), way.variables.end());
  command.insert(command.end(), {KOLO_CRASHING_RANK, way.transport, std::to_string(victim),
                                 std::to_string(operation), std::to_string(polls)});
  return run_processes(kSize, command);
}

void kill_one(const Way& way, int victim, int operation, int polls) {
  INFO(way << ": rank " << victim << " dies in operation " << operation << " after " << polls
           << " polls");
  const auto start = std::chrono::steady_clock::now();
  const auto outcomes = run_over(way, victim, operation, polls);
  REQUIRE(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));  // of 60
  std::string cause;
  for (int rank = 0; rank < kSize; ++rank) {
    const ProcessOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << ": " << outcome.output);
    if (rank == victim) {
      REQUIRE(outcome.exit_code == 128 + 9);
      continue;
    }
    REQUIRE(outcome.exit_code == 3);
    if (cause.empty()) cause = outcome.output;
    REQUIRE(outcome.output == cause);
    REQUIRE(cause.find("rank " + std::to_string(victim)) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("a killed rank ends the others with one cause, in any operation") {
  const Way way = GENERATE(from_range(ways()));
  for (int operation = 0; operation < 6; ++operation) {
    const bool is_even = operation % 2 == 0;
    if (!way.starts_slowly || is_even) kill_one(way, operation % kSize, operation, 0);
    if (!way.starts_slowly || !is_even) kill_one(way, (operation + 1) % kSize, operation, 3);
  }
}

TEST_CASE("a killed rank ends the others with one cause, at any point of an operation") {
  const Way way = GENERATE(from_range(ways()));
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const int rounds = way.starts_slowly ? 4 : 8;
  for (int round = 0; round < rounds; ++round) {
    // Not in the last of the twelve operations: the others could finish it without the victim.
    kill_one(way, static_cast<int>(random() % kSize), static_cast<int>(random() % 11),
             static_cast<int>(random() % 200));
  }
}

TEST_CASE("ranks as processes all end well if none dies") {
  auto all = ways();
  all.push_back({"auto"});
  const Way way = GENERATE_REF(from_range(all));
  for (const auto& outcome : run_over(way, -1, 0, 0)) {
    INFO(outcome.output);
    REQUIRE(outcome.exit_code == 0);
  }
}

TEST_CASE("ranks that hang are killed after the limit of their job") {
  for (const ProcessOutcome& rank :
       run_processes(2, {"/usr/bin/tail", "-f", "/dev/null"}, {}, std::chrono::seconds(0))) {
    CHECK(rank.exit_code == 128 + 9);
    CHECK(rank.output == "killed after 0 s\n");
  }
}

}  // namespace kolo::test
