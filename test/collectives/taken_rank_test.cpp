// Two processes that were given the same RANK: both learn it, whatever the store.
#include <string>
#include <vector>

#include "test/collectives/processes.h"
#include "test/support/catch.h"
#include "test/transports/store_table.h"

namespace kolo::test {

TEST_CASE("ranks that are one and the same are told so") {
  const TemporaryFile file;
  const std::string store = GENERATE("tcp", "file");
  const std::string variables =
      store == "tcp" ? "RANK=1 exec" : "RANK=1 KOLO_STORE=file:" + file.path() + " exec";
  // As rank 1 of two; a rank 0 never comes.
  const auto outcomes =
      run_processes(2, {"/bin/sh", "-c", variables + " \"$0\" shm 9 9 9", KOLO_MORTAL_RANK});
  for (const ProcessOutcome& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.exit_code == 3);
    CHECK_THAT(outcome.output, ContainsSubstring("rank 1 is taken twice, by ") &&
                                   ContainsSubstring("give each process its own RANK"));
  }
  CHECK(outcomes[0].output == outcomes[1].output);
}

}  // namespace kolo::test
