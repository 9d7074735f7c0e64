// Processes that were given the same RANK, or different WORLD_SIZEs: all learn it, whatever the
// store.
#include <string>
#include <vector>

#include "test/collectives/support/processes.h"
#include "test/support/catch.h"
#include "test/transports/store/store_table.h"

namespace kolo::test {
namespace {

// Ranks that a shell starts, once it has set what `variables` says.
std::vector<ProcessOutcome> run_with(int size, const std::string& variables) {
  return run_processes(size,
                       {"/bin/sh", "-c", variables + " exec \"$0\" shm 9 9 9", KOLO_CRASHING_RANK});
}

}  // namespace

TEST_CASE("ranks that are one and the same are told so") {
  const TemporaryFile file;
  const std::string store = GENERATE("tcp", "file");
  const std::string variables = store == "tcp" ? "RANK=1" : "RANK=1 KOLO_STORE=file:" + file.path();
  const auto outcomes = run_with(2, variables);  // as rank 1 of two; a rank 0 never comes
  for (const ProcessOutcome& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.exit_code == 3);
    CHECK_THAT(outcome.output, ContainsSubstring("rank 1 is taken twice, by ") &&
                                   ContainsSubstring("give each process its own RANK"));
  }
  CHECK(outcomes[0].output == outcomes[1].output);
}

TEST_CASE("ranks that were told different sizes are told so") {
  const TemporaryFile file;
  const std::string store = GENERATE("tcp", "file");
  // Rank 1 says more than rank 0, less than it, and is beyond what rank 0 says.
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
