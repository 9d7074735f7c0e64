// The flags of an experiment, and the arguments of its points.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/experiments/experiment.h"

namespace kolo::train {

// Adds a flag with a list of whole numbers, as "64,128,256", for ExperimentOptions::values. They
// are put in ascending order, each once.
void add_list_flag(CLI::App& app, const std::string& names, const std::string& description,
                   const std::string& usual, ExperimentOptions& options);

// The last value of that flag in the words, "--flag value" or "--flag=value"; nothing if it is not
// there. `flag` has hyphens; in the words, underscores mean the same.
std::optional<std::string> value_of(const std::vector<std::string>& words, std::string_view flag);
bool has_flag(const std::vector<std::string>& words, std::string_view flag);

// "--steps=15" and the like for experiments about speed, unless `training` has --epochs.
std::vector<std::string> speed_defaults(const ExperimentOptions& options);

// `given`: the command and its flags. Throws UsageError.
ExperimentOptions parse_experiment(const Experiment& experiment,
                                   const std::vector<std::string>& given);

// The points, complete. Checks the flags of each, the transport and the data. Throws UsageError and
// DataError.
std::vector<Point> checked_points(const Experiment& experiment, const ExperimentOptions& options);

}  // namespace kolo::train
