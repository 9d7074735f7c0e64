// Collectives while another library's threads compute on the same cores: all cores are taken, twice
// over, and nobody gives one back before its time is up.
#include <string>

#include "test/collectives/support/processes.h"
#include "test/support/catch.h"

namespace kolo::test {

TEST_CASE("ranks come through while the threads of OpenMP compute beside them, or between") {
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
