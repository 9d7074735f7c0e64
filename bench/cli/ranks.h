// The ranks of a measurement: threads of this process, processes that this one starts, or this one
// as somebody else's rank.
#pragma once

#include <memory>
#include <string>

#include "bench/cli/arguments.h"
#include "bench/cli/failure.h"

namespace kolo::bench {

// Measures what was asked for, and prints it. The exit code: 0, 1 after a failure (which has been
// printed), 3 where results were wrong. `argv` starts this program again, for each rank.
int run_collective(const Arguments& arguments, int argc, const char* const* argv);

// How many ranks a launcher started, this process being one; 0 where there is none.
int launched_ranks();

// Says on standard error why the arguments are refused: once, where a launcher started this process
// with others.
void report_refusal(const std::string& refusal);

// The part of one rank; returns how many elements were wrong. Throws as fail_together does.
std::uint64_t run_rank(int rank, const Arguments& arguments, std::shared_ptr<Store> store,
                       Audience audience);

}  // namespace kolo::bench
