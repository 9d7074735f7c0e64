// This process as one rank of a launched run.
#pragma once

#include "train/options.h"
#include "transports/error.h"

namespace kolo::train {

// The exit code of a rank whose memory ran out.
inline constexpr int kOutOfMemoryExit = 3;

// True if this process was started as a rank, according to the environment: by this program, by
// kolo-run, or by any launcher that sets RANK and WORLD_SIZE.
bool is_launched();

// Joins the other ranks and trains to the end. Rank 0 reports to the process that started it, or to
// the terminal. A failure on this rank is sent to all ranks, and thrown. Returns the exit code. If
// another rank of the same program failed and reports that itself, returns 1 without a message.
int run_as_rank(const Options& options, const std::vector<std::string>& arguments);

// Reports a failure of the job on standard error, unless another rank does. Returns the exit code.
int report_failure(const Error& error, int rank);

}  // namespace kolo::train
