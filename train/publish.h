// Results to where people look: the table on standard output, the report in its folder.
#pragma once

#include <string>
#include <vector>

#include "train/options.h"
#include "train/report.h"

namespace kolo::train {

/// Throws ReportError.
void publish(const Options& options, const std::vector<std::string>& arguments,
             std::vector<RunRecord> runs);

}  // namespace kolo::train
