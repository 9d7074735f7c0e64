// The command `kolo-train crossover`.
#pragma once

#include <string>
#include <vector>

#include "train/crossover/options.h"

namespace kolo::train {

// Starts the ranks, or runs as one of them. Rank 0 prints the table and writes the report. Returns
// the exit code. Throws UsageError for a wrong number of ranks, and a folder that cannot be
// written.
int run_crossover(const CrossoverOptions& options, const std::vector<std::string>& arguments);

}  // namespace kolo::train
