// The contract of transport.h as a list of clauses, each a function that proves it and throws what
// it found instead.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "transports/conformance/subject.h"

namespace kolo::conformance {

// What a transport must offer for a clause to be about it.
enum class Need { kNothing, kAnswers, kSleep, kSleepAndAnswers, kProcesses };

struct Clause {
  std::string_view group;
  std::string_view text;
  Need need = Need::kNothing;
  void (*prove)(const Subject& subject) = nullptr;

  bool is_for(const Features& offers) const;
};

std::span<const Clause> clauses();

// std::invalid_argument where there is none with this text.
const Clause& clause_named(std::string_view text);

#define KOLO_CLAUSE(function, group, need, text) void function(const Subject& subject);
#include "transports/conformance/clauses.inc"
#undef KOLO_CLAUSE

}  // namespace kolo::conformance
