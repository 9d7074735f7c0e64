// Report of `kolo-train crossover`: table, report.json, report.md and a plot.
#pragma once

#include <string>
#include <vector>

#include "train/crossover/crossover.h"

namespace kolo::train {

// One sentence each.
std::vector<std::string> crossover_findings(int ranks, const std::vector<CrossoverPoint>& points);

std::string crossover_table(const std::vector<CrossoverPoint>& points);

// Throws ReportError.
void publish_crossover(const CrossoverOptions& options, const std::vector<std::string>& arguments,
                       const CrossoverResult& result);

}  // namespace kolo::train
