// A killed worker or key server: all other ranks end within moments with one cause that names it.
#include <chrono>
#include <string>

#include "test/collectives/support/processes.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr int kSize = 4;

std::vector<ProcessOutcome> run_over(const std::string& transport, int victim, int iteration) {
  return run_processes(kSize, {KOLO_CRASHING_KEY_RANK, transport, std::to_string(victim),
                               std::to_string(iteration)});
}

}  // namespace

TEST_CASE("a killed worker or key server ends all others with its name") {
  const std::string transport = GENERATE("shm", "tcp");
  const int victim = GENERATE(1, 2, 3);
  const int iteration = GENERATE(0, 4);
  const auto start = std::chrono::steady_clock::now();
  const auto outcomes = run_over(transport, victim, iteration);
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

TEST_CASE("key servers and workers as processes all end well if none dies") {
  for (const auto& outcome : run_over("auto", -1, 0)) {
    INFO(outcome.output);
    REQUIRE(outcome.exit_code == 0);
  }
}

}  // namespace kolo::test
