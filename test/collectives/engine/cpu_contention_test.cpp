// Collectives beside another library's busy threads. All cores are oversubscribed twice, and no
// thread yields its core before its time slice ends.
#include <string>

#include "test/collectives/support/processes.h"
#include "test/support/catch.h"

namespace kolo::test {

TEST_CASE(
    "ranks make progress while threads of OpenMP compute beside them or between their calls") {
  const std::string transport = GENERATE("shm", "tcp");
  const std::string when = GENERATE("beside", "between");
  const int size = GENERATE(2, 4);
  INFO(size << " ranks over " << transport << ", OpenMP " << when);
  for (const auto& outcome :
       run_processes(size, {KOLO_CPU_CONTENTION_RANK, transport, when, "2"})) {
    INFO(outcome.output);
    REQUIRE(outcome.exit_code == 0);
  }
}

}  // namespace kolo::test
