// Every clause of the contract over every transport of the table, and the table in the README.
#include "transports/conformance/clauses.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "test/support/catch.h"
#include "test/support/sanitizers.h"
#include "test/transports/conformance/transport_table.h"
#include "transports/conformance/results.h"

using namespace kolo;
using namespace kolo::test;

namespace {

// False if this build lacks the transport that the row needs.
bool is_built(const TransportRow& row) {
  const auto names = transport_names();
  return row.needs.empty() || std::find(names.begin(), names.end(), row.needs) != names.end();
}

conformance::Subject subject_of(const TransportRow& row) {
  conformance::Subject subject;
  if (row.make == nullptr) {
    subject = conformance::subject_named(std::string(row.name), {KOLO_CONFORMANCE, "--rank"});
  } else {
    subject.name = row.name;
    subject.make = row.make;
  }
  subject.calls_itself = row.calls_itself;
  return subject;
}

void prove(std::string_view text) {
  const conformance::Clause& clause = conformance::clause_named(text);
  for (const TransportRow& row : kTransports) {
    const bool is_left_out =
        !row.groups.empty() && row.groups.find(clause.group) == row.groups.npos;
    // The thread sanitizer does not see libfabric's own code, and decorators run in other rows.
    const bool is_seen_elsewhere = kIsThreadSanitized && row.needs == "ofi" && row.make != nullptr;
    if (!is_built(row) || is_left_out || is_seen_elsewhere) continue;
    DYNAMIC_SECTION(row.name) {
      conformance::Subject subject = subject_of(row);
      subject.offers = conformance::probe(subject);
      CHECK(subject.offers.answers == row.can_answer);
      CHECK(subject.offers.processes == row.joins_processes);
      if (clause.is_for(subject.offers)) clause.prove(subject);
      CHECK(played_violations().empty());
    }
  }
}

}  // namespace

#define KOLO_CLAUSE(function, group, need, text) \
  TEST_CASE(text) { prove(text); }
#include "transports/conformance/clauses.inc"
#undef KOLO_CLAUSE

TEST_CASE("the table of tests and the registry list the same transports") {
  std::set<std::string_view> tested;
  for (const auto& row : kTransports) {
    if (row.is_of_registry() && is_built(row)) tested.insert(row.name);
  }
  const auto names = transport_names();
  CHECK(tested == std::set<std::string_view>(names.begin(), names.end()));
}

// The clause tests above prove that the transports keep them.
TEST_CASE("the README's table lists every clause and the offers of each transport of this build") {
  std::ifstream file(KOLO_TRANSPORTS_README);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto table = conformance::read_markdown(text);
  INFO("to write it anew: kolo-conformance --transport all --markdown transports/README.md");
  const auto clauses = conformance::clauses();
  REQUIRE(table.rows.size() == clauses.size());
  for (std::size_t i = 0; i < clauses.size(); ++i) CHECK(table.rows[i][0] == clauses[i].text);
  for (const TransportRow& row : kTransports) {
    if (!row.is_of_registry() || !is_built(row)) continue;
    INFO(row.name);
    const auto column = std::find(table.transports.begin(), table.transports.end(), row.name);
    REQUIRE(column != table.transports.end());
    const auto place = static_cast<std::size_t>(column - table.transports.begin()) + 1;
    const auto offers = conformance::probe(subject_of(row));
    for (std::size_t i = 0; i < clauses.size(); ++i) {
      INFO(clauses[i].text);
      REQUIRE(table.rows[i].size() == table.transports.size() + 1);
      // Fake ranks are threads, but those of the run that wrote the column may have been processes.
      if (row.is_played && clauses[i].need == conformance::Need::kProcesses) continue;
      const auto outcome = clauses[i].is_for(offers) ? conformance::Outcome::kPassed
                                                     : conformance::Outcome::kNotOffered;
      CHECK(table.rows[i][place] == conformance::cell(outcome));
    }
  }
}

TEST_CASE("a rewritten table keeps the columns of transports that were not run") {
  const auto results_of = [](const char* transport, conformance::Outcome outcome) {
    conformance::Results results{transport, {}};
    for (const conformance::Clause& clause : conformance::clauses())
      results.results.push_back({&clause, outcome, 0, ""});
    return results;
  };
  const auto in_file = [](const std::string& table) {
    return conformance::read_markdown(std::string(conformance::kTableBegin) + "\n" + table +
                                      std::string(conformance::kTableEnd));
  };
  const auto before =
      in_file(conformance::markdown({results_of("one", conformance::Outcome::kPassed),
                                     results_of("other", conformance::Outcome::kNotOffered)}));
  const auto after =
      in_file(conformance::markdown({results_of("new", conformance::Outcome::kPassed),
                                     results_of("one", conformance::Outcome::kFailed)},
                                    before));
  CHECK(after.transports == std::vector<std::string>{"one", "other", "new"});
  for (const auto& row : after.rows)
    CHECK(row == std::vector<std::string>{row[0], "**no**", "-", "yes"});
  CHECK(after.rows.size() == conformance::clauses().size());
}
