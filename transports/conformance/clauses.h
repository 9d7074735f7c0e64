// Clauses of the contract in transport.h. Each is a function that proves it, or throws what it
// found instead.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "transports/conformance/subject.h"

namespace kolo::inline v0::conformance {

// What a transport must offer to be tested by a clause.
enum class Need { kNothing, kAnswers, kSleep, kSleepAndAnswers, kProcesses };

struct Clause {
  std::string_view group;
  std::string_view text;
  Need need = Need::kNothing;
  void (*prove)(const Subject& subject) = nullptr;

  bool is_for(const Features& offers) const;
};

std::span<const Clause> clauses();

// std::invalid_argument if no clause has this text.
const Clause& clause_named(std::string_view text);

#define KOLO_CLAUSE(function, group, need, text) void function(const Subject& subject);
#include "transports/conformance/clauses.inc"
#undef KOLO_CLAUSE

}  // namespace kolo::inline v0::conformance
