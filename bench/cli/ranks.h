// Ranks of a measurement: threads of this process, processes that it starts, or this process as a
// rank under another launcher.
#pragma once

#include <memory>
#include <string>

#include "bench/cli/arguments.h"
#include "bench/cli/failure.h"

namespace kolo::bench {

// Runs the measurement and prints the results. Returns the exit code: 0, 1 after a failure (already
// reported), 3 for wrong results. `argv` is used to start this program again for each rank.
int run_collective(const Arguments& arguments, int argc, const char* const* argv);

// Number of ranks if a launcher started this process as one of them, else 0.
int launched_ranks();

// Prints to standard error why the arguments are refused; only once per job under a launcher.
void report_refusal(const std::string& refusal);

// Runs one rank; returns the number of wrong elements. Throws as fail_together does.
std::uint64_t run_rank(int rank, const Arguments& arguments, std::shared_ptr<Store> store,
                       Audience audience);

}  // namespace kolo::bench
