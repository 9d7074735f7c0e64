// What the clauses came to, transport by transport, and the two forms in which it is shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transports/conformance/clauses.h"

namespace kolo::conformance {

enum class Outcome { kPassed, kFailed, kNotOffered };

struct Result {
  const Clause* clause = nullptr;
  Outcome outcome = Outcome::kPassed;
  double seconds = 0;
  std::string why;  // of a failure
};

struct Results {
  std::string transport;
  std::vector<Result> results;  // in the order of clauses()

  int count(Outcome outcome) const;
};

// One row of a table for people, and the lines below it where it failed.
std::string row(const Result& result);

// The transports, and the cells of each row in their order, of such a table. Empty where `text` has
// none.
struct Table {
  std::vector<std::string> transports;
  std::vector<std::vector<std::string>> rows;  // the clause's text, then a cell for each
};
Table read_markdown(const std::string& text);

// The table transports x clauses in Markdown; every transport has the same clauses. Those of
// `before` that are not among them keep their columns: another machine ran them.
std::string markdown(const std::vector<Results>& transports, const Table& before = {});

// Writes the table into the file, between the lines kTableBegin and kTableEnd, whose columns of
// other transports stay. Error kSystem where the file has none, or cannot be written.
void write_markdown(const std::string& file, const std::vector<Results>& transports);

inline constexpr std::string_view kTableBegin = "<!-- kolo-conformance: the table begins -->";
inline constexpr std::string_view kTableEnd = "<!-- kolo-conformance: the table ends -->";

// The words of a cell.
std::string_view cell(Outcome outcome);

}  // namespace kolo::conformance
