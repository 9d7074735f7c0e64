// Results of the clauses, by transport, as rows of text or as a Markdown table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transports/conformance/clauses.h"

namespace kolo::inline v0::conformance {

enum class Outcome { kPassed, kFailed, kNotOffered };

struct Result {
  const Clause* clause = nullptr;
  Outcome outcome = Outcome::kPassed;
  double seconds = 0;
  std::string why;  // for a failure
};

struct Results {
  std::string transport;
  std::vector<Result> results;  // in the order of clauses()

  int count(Outcome outcome) const;
};

// One row of text, with the reason below it if the clause failed.
std::string row(const Result& result);

// Content of such a table: the transports, and the cells of each row. Empty if `text` has no table.
struct Table {
  std::vector<std::string> transports;
  std::vector<std::vector<std::string>> rows;  // the clause's text, then a cell for each
};
Table read_markdown(const std::string& text);

// Markdown table of transports x clauses; every transport has the same clauses. Transports of
// `before` without new results keep their columns: they were run on another machine.
std::string markdown(const std::vector<Results>& transports, const Table& before = {});

// Writes the table into the file, between the lines kTableBegin and kTableEnd. Columns of other
// transports stay. Error kSystem if the file lacks these lines or cannot be written.
void write_markdown(const std::string& file, const std::vector<Results>& transports);

inline constexpr std::string_view kTableBegin = "<!-- kolo-conformance: the table begins -->";
inline constexpr std::string_view kTableEnd = "<!-- kolo-conformance: the table ends -->";

// Text of a cell.
std::string_view cell(Outcome outcome);

}  // namespace kolo::inline v0::conformance
