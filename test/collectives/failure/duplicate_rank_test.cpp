// Processes with the same RANK or with different WORLD_SIZEs: every one gets an error, whatever the
// store.
#include <string>
#include <vector>

#include "test/collectives/support/processes.h"
#include "test/support/catch.h"
#include "test/transports/store/store_table.h"

namespace kolo::test {
namespace {

// Runs ranks through a shell that sets `variables` first.
std::vector<ProcessOutcome> run_with(int size, const std::string& variables) {
  return run_processes(size,
                       {"/bin/sh", "-c", variables + " exec \"$0\" shm 9 9 9", KOLO_CRASHING_RANK});
}

}  // namespace

TEST_CASE("processes with the same rank all get an error") {
  const TemporaryFile file;
  const std::string store = GENERATE("tcp", "file");
  const std::string variables = store == "tcp" ? "RANK=1" : "RANK=1 KOLO_STORE=file:" + file.path();
  const auto outcomes = run_with(2, variables);  // as rank 1 of two; rank 0 never comes
  for (const ProcessOutcome& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.exit_code == 3);
    CHECK_THAT(outcome.output, ContainsSubstring("rank 1 is taken twice, by ") &&
                                   ContainsSubstring("give each process its own RANK"));
  }
  CHECK(outcomes[0].output == outcomes[1].output);
}

TEST_CASE("ranks with different sizes all get an error") {
  const TemporaryFile file;
  const std::string store = GENERATE("tcp", "file");
  // The size of rank 1 is larger than that of rank 0, smaller, or too small for rank 1 itself.
  const std::string sizes =
      GENERATE("WORLD_SIZE=$((2 + RANK))", "WORLD_SIZE=$((3 - RANK))",
               "WORLD_SIZE=$((2 + RANK)) RANK=$((2 * RANK)) LOCAL_RANK=$((2 * LOCAL_RANK)) "
               "LOCAL_WORLD_SIZE=$((2 + LOCAL_RANK))");
  const auto outcomes =
      run_with(2, store == "tcp" ? sizes : sizes + " KOLO_STORE=file:" + file.path());
  for (const ProcessOutcome& outcome : outcomes) {
    INFO(sizes << '\n' << outcome.output);
    CHECK(outcome.exit_code == 3);
    CHECK_THAT(outcome.output, ContainsSubstring(" says WORLD_SIZE=") &&
                                   ContainsSubstring(": give all ranks the same"));
  }
  CHECK(outcomes[0].output == outcomes[1].output);
}

}  // namespace kolo::test
