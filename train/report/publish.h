// Publishes results: the table on standard output, the report in its folder.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "train/experiment/arm_runner.h"
#include "train/options.h"
#include "train/report/report.h"

namespace kolo::train {

// Throws UsageError if the folder cannot be written. Leaves nothing there. An empty name: no
// report.
void require_report_folder(const std::string& folder);

// The same, and warns on standard error if the report will replace an older one.
void check_report_folder(const std::string& folder);

struct Publication {
  std::string table;  // for standard output
  std::string json;
  // The text of report.md; `no_plots`: why there are no plots, or empty.
  std::function<std::string(const std::string& no_plots)> markdown;
  std::map<std::string, std::string> files = {};  // further ones: name to contents
  std::string no_plots = {};                      // why there is nothing to draw; empty: there is
};

// Prints the table first, so that it is not lost if the folder cannot be written. An empty folder:
// only the table. Throws ReportError.
void publish(const std::string& folder, const Publication& what);

// "out.interrupted" for "out": where an interrupted run leaves its report.
std::string interrupted_report_folder(const std::string& folder);

// `outcome`: with one run or more, finished or not. As above.
void publish(const Options& options, const std::vector<std::string>& arguments,
             const ExperimentResult& outcome);

}  // namespace kolo::train
