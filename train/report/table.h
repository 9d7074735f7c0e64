// Table of a comparison: a column per arm, a row per number. Used for the terminal and report.md.
#pragma once

#include <string>
#include <vector>

#include "train/report/report.h"

namespace kolo::train {

struct TableRow {
  std::string label;  // indented by two spaces if it is a part of the row above
  std::vector<std::string> cells;
};

struct Table {
  std::vector<std::string> columns;  // the arms, in the order of the runs
  std::vector<TableRow> rows;
};

// The mean of the values, one per seed, with their spread: "2.0 [1.0, 3.0]" for two values,
// "2.0 ± 1.0" with the sample standard deviation for more.
std::string with_spread(const std::vector<double>& values, int digits);

// With several seeds, cells are means with their spread.
Table make_table(const Report& report);

// The runs of one arm, in the order of seeds.
std::vector<const RunRecord*> runs_of(const Report& report, const std::string& arm);

}  // namespace kolo::train
