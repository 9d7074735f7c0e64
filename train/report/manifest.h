// manifest.json: how a run was started, beside its report and its checkpoints.
#pragma once

#include <string>

#include "train/options.h"

namespace kolo::train {

// JSON: command ("" if it is not known), flags with their values in effect, seed, host, machine,
// versions, commit, date.
std::string manifest_json(const Options& options, const std::string& command);

}  // namespace kolo::train
