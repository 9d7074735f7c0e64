// Check that runs are comparable.
#pragma once

#include <map>
#include <span>
#include <stdexcept>
#include <string>

#include "train/experiment/run_record.h"

namespace kolo::train {

// Error: runs differ in more than their strategy. The message names the runs, the term and both
// values.
class ComparisonRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws ComparisonRefused unless all runs of one seed have equal terms: model, initial weights,
// data and its order, optimizer, precision, iterations, threads, transport. Each run is compared
// with the first run of its seed.
void require_comparable(std::span<const RunRecord> runs);

// The terms that all runs share: name to value.
std::map<std::string, std::string> shared_terms(std::span<const RunRecord> runs);

}  // namespace kolo::train
