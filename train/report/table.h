// The table of a comparison: a column an arm, a row a number. The terminal and report.md show the
// same one.
#pragma once

#include <string>
#include <vector>

#include "train/report/report.h"

namespace kolo::train {

struct TableRow {
  std::string label;  // indented by two spaces where it is a part of the row above
  std::vector<std::string> cells;
};

struct Table {
  std::vector<std::string> columns;  // the arms, in the order in which they ran
  std::vector<TableRow> rows;
};

// Where there are several seeds, cells are means, followed by the smallest and the largest value
// in brackets.
Table make_table(const Report& report);

// The runs of one arm, in the order of seeds.
std::vector<const RunRecord*> runs_of(const Report& report, const std::string& arm);

// What the comparison says about equality, a sentence each: replicas, final weights of the arms,
// bytes against formula.
std::vector<std::string> findings(const Report& report);

}  // namespace kolo::train
