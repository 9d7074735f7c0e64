#include "transports/conformance/clauses.h"

#include <stdexcept>

namespace kolo::inline v0::conformance {

namespace {

constexpr Clause kClauses[] = {
#define KOLO_CLAUSE(function, group, need, text) {group, text, Need::need, function},
#include "transports/conformance/clauses.inc"
#undef KOLO_CLAUSE
};

}  // namespace

bool Clause::is_for(const Features& offers) const {
  switch (need) {
    case Need::kNothing:
      return true;
    case Need::kAnswers:
      return offers.answers;
    case Need::kSleep:
      return offers.sleep;
    case Need::kSleepAndAnswers:
      return offers.sleep && offers.answers;
    case Need::kProcesses:
      return offers.processes;
  }
  return true;
}

std::span<const Clause> clauses() { return kClauses; }

const Clause& clause_named(std::string_view text) {
  for (const Clause& clause : kClauses) {
    if (clause.text == text) return clause;
  }
  throw std::invalid_argument("no clause '" + std::string(text) + "'; --list shows the clauses");
}

}  // namespace kolo::inline v0::conformance
