// Failure of a benchmark: all ranks end, and one of them reports the cause.
#pragma once

#include <exception>
#include <string>

#include "transports/rendezvous.h"

namespace kolo::bench {

// Thrown by a rank if another rank reports the job's failure.
class ReportedByAnotherRank : public std::exception {
 public:
  const char* what() const noexcept override { return "another rank reports the failure"; }
};

// Which ranks' messages the user sees together.
enum class Audience {
  kOneForAll,    // threads, or ranks under one launcher that shows all output
  kOneEachRank,  // started by hand, possibly in a terminal each
};

// Call while `failure` of this rank is handled. Posts it to the store, and throws the job's first
// failure, from any rank. A std::invalid_argument stays one. Throws ReportedByAnotherRank if one
// rank reports for all and another rank was first.
[[noreturn]] void fail_together(Store& store, int rank, Audience audience,
                                const std::exception& failure);

// launch::report_for_all with the name of this program.
void report_for_all(Store& store, const std::string& text, int code);

}  // namespace kolo::bench
