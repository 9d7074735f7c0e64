// Findings of a comparison, in words: what its numbers prove, and what makes them doubtful.
#pragma once

#include <string>
#include <vector>

#include "train/report/report.h"

namespace kolo::train {

// One sentence each: equality of replicas and of the final weights of the arms, bytes against
// formula, warnings.
std::vector<std::string> findings(const Report& report);

}  // namespace kolo::train
