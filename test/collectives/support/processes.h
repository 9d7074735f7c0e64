// Ranks as processes: a job of one program, started and watched by a test that serves the store.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace kolo::test {

struct ProcessOutcome {
  int exit_code = 0;  // 128 + the signal number if a signal killed it
  std::string output;
};

// Runs `command` as ranks 0 to size - 1 and waits for all of them. After the limit all are killed,
// and the outputs say so. `host_ids`: the simulated host of each rank; empty: all on this machine.
std::vector<ProcessOutcome> run_processes(int size, const std::vector<std::string>& command,
                                          const std::vector<std::string>& host_ids = {},
                                          std::chrono::seconds limit = std::chrono::seconds(300));

}  // namespace kolo::test
