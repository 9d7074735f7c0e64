// This process as one rank of a run that somebody has launched.
#pragma once

#include "train/options.h"

namespace kolo::train {

// True where the environment says that this process is a rank: started by this program, kolo-run,
// or anybody who sets RANK and WORLD_SIZE.
bool is_launched();

// Joins the others and trains to the end. Rank 0 tells its observer: whoever started it, or else
// the terminal. What goes wrong here is made known to all ranks, and thrown. Returns the exit
// code: 1, and not a word, where another rank of the same program has failed and says so itself.
int run_as_rank(const Options& options, const std::vector<std::string>& arguments);

}  // namespace kolo::train
