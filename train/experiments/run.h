// The commands of experiments: kolo-train sweep, scale, scale-data and ladder.
#pragma once

#include <string>
#include <vector>

#include "train/experiments/experiment.h"

namespace kolo::train {

// Runs the points that an earlier start has not finished, prints the table and writes the report.
// Returns the exit code. Throws UsageError and DataError before anything is started, ReportError
// later.
int run_experiment(const Experiment& experiment, const ExperimentOptions& options,
                   const std::vector<std::string>& arguments);

}  // namespace kolo::train
