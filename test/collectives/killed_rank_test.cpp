// A rank that is killed, in any operation and at any point of it, ends all others within moments,
// with one cause that names it.
#include <chrono>
#include <random>
#include <string>

#include "test/collectives/processes.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr int kSize = 3;

void kill_one(const std::string& transport, int victim, int operation, int polls) {
  INFO(transport << ": rank " << victim << " dies in operation " << operation << " after " << polls
                 << " polls");
  const auto start = std::chrono::steady_clock::now();
  const auto outcomes = run_processes(kSize, {KOLO_MORTAL_RANK, transport, std::to_string(victim),
                                              std::to_string(operation), std::to_string(polls)});
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

TEST_CASE("a killed rank ends the others with one cause, whatever it was doing") {
  const std::string transport = GENERATE("shm", "tcp");
  for (int operation = 0; operation < 6; ++operation) {
    kill_one(transport, operation % kSize, operation, 0);
    kill_one(transport, (operation + 1) % kSize, operation, 3);
  }
}

TEST_CASE("a killed rank ends the others with one cause, at whatever point") {
  const std::string transport = GENERATE("shm", "tcp");
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 8; ++round) {
    // Not in the last of the twelve: the others could be done with it.
    kill_one(transport, static_cast<int>(random() % kSize), static_cast<int>(random() % 11),
             static_cast<int>(random() % 200));
  }
}

TEST_CASE("ranks in processes of their own all end well where nobody dies") {
  const std::string transport = GENERATE("shm", "tcp", "auto");
  for (const auto& outcome : run_processes(kSize, {KOLO_MORTAL_RANK, transport, "-1", "0", "0"})) {
    INFO(outcome.output);
    REQUIRE(outcome.exit_code == 0);
  }
}

}  // namespace kolo::test
