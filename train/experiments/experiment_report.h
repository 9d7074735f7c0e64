// The report of an experiment: a table, report.json, report.md and plots.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/experiments/experiment.h"

namespace kolo::train {

struct ExperimentReport {
  std::string experiment;  // "sweep"
  std::string command;     // the command line
  Summary summary;
  std::vector<PointResult> results;
};

// For the terminal.
std::string experiment_text(const ExperimentReport& report);
std::string experiment_json(const ExperimentReport& report);
// `no_plots`: why there are no plots, or empty.
std::string experiment_markdown(const ExperimentReport& report, const std::string& no_plots);

}  // namespace kolo::train
