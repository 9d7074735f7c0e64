// Runs the arms of a comparison, one after the other, each in fresh processes on this host, and
// collects their records.
#pragma once

#include <string>
#include <vector>

#include "train/experiment/run_record.h"
#include "train/options.h"

namespace kolo::train {

struct ExperimentResult {
  std::vector<RunRecord> runs;  // those that were finished
  int exit_code = 0;            // of the rank that failed first, or of what ended it
  std::string message;          // which arm, which rank, how; empty when nothing failed
};

// Everything that can be wrong before a process is started: data that is not there, more ranks
// than samples. Throws DataError.
void check_data(const Options& options);

// `arguments`: as given to the program, for its ranks. Shows progress on standard error. From the
// main thread only.
ExperimentResult run_arms(const Options& options, const std::vector<std::string>& arguments);

}  // namespace kolo::train
