// Results to where people look: the table on standard output, the report in its folder.
#pragma once

#include <string>
#include <vector>

#include "train/options.h"
#include "train/report/report.h"

namespace kolo::train {

// Throws UsageError where the report's folder cannot be written; leaves nothing there.
void check_report_folder(const Options& options);

// `runs`: one or more. `incomplete`: why there are not more of them; empty where these are all.
// The table comes first, so that it is there whatever becomes of the folder. Throws ReportError.
void publish(const Options& options, const std::vector<std::string>& arguments,
             std::vector<RunRecord> runs, const std::string& incomplete);

}  // namespace kolo::train
