#include "transports/conformance/results.h"

#include <fmt/format.h>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "transports/error.h"
#include "transports/posix/whole_file.h"

namespace kolo::inline v0::conformance {

namespace {

std::string_view word(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "FAILED";
    case Outcome::kNotOffered:
      return "not offered";
  }
  return "";
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream rest(line);
  std::string cell_text;
  std::getline(rest, cell_text, '|');  // before the first bar
  while (std::getline(rest, cell_text, '|')) {
    const auto first = cell_text.find_first_not_of(' ');
    const auto last = cell_text.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell_text.substr(first, last - first + 1));
  }
  return cells;
}

struct Column {
  std::string transport;
  std::vector<std::string> cells;  // in the order of clauses()
};

Column column_of(const Results& results) {
  Column column{results.transport, {}};
  for (const Result& result : results.results) column.cells.emplace_back(cell(result.outcome));
  return column;
}

// Column number `place` of a table. Cells of clauses that the table lacks are empty.
Column column_of(const Table& table, std::size_t place) {
  Column column{table.transports[place], {}};
  for (const Clause& clause : clauses()) {
    const auto row = std::ranges::find_if(
        table.rows, [&clause](const auto& cells) { return cells.at(0) == clause.text; });
    const bool is_there = row != table.rows.end() && row->size() > place + 1;
    column.cells.push_back(is_there ? (*row)[place + 1] : "");
  }
  return column;
}

// Columns of `before` keep their places; new ones follow.
std::vector<Column> columns_of(const std::vector<Results>& transports, const Table& before) {
  std::vector<Column> columns;
  for (std::size_t place = 0; place < before.transports.size(); ++place)
    columns.push_back(column_of(before, place));
  for (const Results& results : transports) {
    const auto old = std::ranges::find(columns, results.transport, &Column::transport);
    if (old == columns.end()) {
      columns.push_back(column_of(results));
    } else {
      *old = column_of(results);
    }
  }
  return columns;
}

std::string read_whole(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw Error(ErrorCode::kSystem, kNoPeer, file + ": it cannot be read");
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

std::string_view cell(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "yes";
    case Outcome::kFailed:
      return "**no**";
    case Outcome::kNotOffered:
      return "-";
  }
  return "";
}

int Results::count(Outcome outcome) const {
  return static_cast<int>(std::ranges::count(results, outcome, &Result::outcome));
}

std::string row(const Result& result) {
  const bool has_run = result.outcome != Outcome::kNotOffered;
  const std::string time = has_run ? fmt::format("{:7.2f} s", result.seconds) : "";
  std::string text = fmt::format("  {:<10}  {:<11}  {:>9}  {}\n", result.clause->group,
                                 word(result.outcome), time, result.clause->text);
  std::istringstream lines(result.why);
  for (std::string line; std::getline(lines, line);) text += fmt::format("{:14}{}\n", "", line);
  return text;
}

std::string markdown(const std::vector<Results>& transports, const Table& before) {
  const std::vector<Column> columns = columns_of(transports, before);
  std::string text = "| | clause |";
  std::string rule = "|---|---|";
  for (const Column& column : columns) {
    text += fmt::format(" {} |", column.transport);
    rule += "---|";
  }
  text += "\n" + rule + "\n";
  std::string_view group;
  for (std::size_t i = 0; i < clauses().size(); ++i) {
    const Clause& clause = clauses()[i];
    text += fmt::format("| {} | {} |", clause.group == group ? "" : clause.group, clause.text);
    group = clause.group;
    for (const Column& column : columns) text += fmt::format(" {} |", column.cells[i]);
    text += "\n";
  }
  return text;
}

Table read_markdown(const std::string& text) {
  Table table;
  const auto begin = text.find(kTableBegin);
  const auto end = text.find(kTableEnd);
  if (begin == std::string::npos || end == std::string::npos) return table;
  std::istringstream lines(text.substr(begin, end - begin));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("|")) rows.push_back(cells_of(line));
  }
  if (rows.size() < 2) return table;
  table.transports.assign(rows[0].begin() + 2, rows[0].end());
  for (std::size_t i = 2; i < rows.size(); ++i)
    table.rows.emplace_back(rows[i].begin() + 1, rows[i].end());
  return table;
}

void write_markdown(const std::string& file, const std::vector<Results>& transports) {
  const std::string text = read_whole(file);
  const auto begin = text.find(kTableBegin);
  const auto end = text.find(kTableEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    throw Error(ErrorCode::kSystem, kNoPeer,
                fmt::format("{}: has no place for the table: add a line '{}' and a line '{}'", file,
                            kTableBegin, kTableEnd));
  }
  posix::write_whole(file, text.substr(0, begin + kTableBegin.size()) + "\n" +
                               markdown(transports, read_markdown(text)) + text.substr(end));
}

}  // namespace kolo::inline v0::conformance
