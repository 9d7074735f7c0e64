// Publishes results: the table on standard output, the report in its folder.
#pragma once

#include <string>
#include <vector>

#include "train/options.h"
#include "train/report/report.h"

namespace kolo::train {

// Throws UsageError if the report's folder cannot be written. Leaves nothing there.
void check_report_folder(const Options& options);

// `runs`: one or more. `incomplete`: why runs are missing; empty if none is. Prints the table
// first, so that it is not lost if the folder cannot be written. Throws ReportError.
void publish(const Options& options, const std::vector<std::string>& arguments,
             std::vector<RunRecord> runs, const std::string& incomplete);

}  // namespace kolo::train
