// Runs the arms of a comparison, each in fresh processes on this host, and collects their records.
// The arms of a seed run at the same time and take turns (turns.h). A failed arm does not end the
// others of its seed.
#pragma once

#include <string>
#include <vector>

#include "train/experiment/progress_bar.h"
#include "train/experiment/run_record.h"
#include "train/options.h"

namespace kolo::train {

struct ExperimentResult {
  std::vector<RunRecord> runs;            // the finished ones
  std::vector<UnfinishedRun> unfinished;  // others that have ended an epoch
  int exit_code = 0;                      // of the rank that failed first, or 128 + signal
  std::string message;                    // which arm, which rank, how; empty if nothing failed
  bool is_out_of_memory = false;          // a rank's memory ran out, or the kernel killed it
};

// Where the runs of one call of run_arms are among those of several calls.
struct RunSpan {
  ProgressBar& progress;
  std::string name;  // put after the arm's name in the display; may be empty
  int first = 0;     // index of the first run
  int all = 0;       // runs of all calls
};

// Checks the data and the checkpoints before any process is started: missing data, more ranks than
// samples, a checkpoint of another model. Throws DataError.
void check_data(const Options& options);

// Runs all arms. `arguments`: those of the program, passed on to the ranks. Shows progress and the
// first failure on standard error. Call from the main thread only.
ExperimentResult run_arms(const Options& options, const std::vector<std::string>& arguments);

// The same, as a part of a longer display.
ExperimentResult run_arms(const Options& options, const std::vector<std::string>& arguments,
                          const RunSpan& span);

}  // namespace kolo::train
