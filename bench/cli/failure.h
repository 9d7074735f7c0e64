// How a benchmark fails: all ranks end, and one of them says why.
#pragma once

#include <exception>
#include <string>

#include "transports/rendezvous.h"

namespace kolo::bench {

// What a rank throws instead of its own failure where another rank says the job's.
class ReportedByAnotherRank : public std::exception {
 public:
  const char* what() const noexcept override { return "another rank says what went wrong"; }
};

// Whose messages people see together.
enum class Audience {
  kOneForAll,    // threads, or the ranks of a launcher that shows what all of them print
  kOneEachRank,  // started by hand: a terminal each, perhaps
};

// Called while `failure`, of this rank, is handled: tells the other ranks, and throws what there is
// to say: the job's first failure, whichever rank met it. std::invalid_argument stays one.
// ReportedByAnotherRank where one speaks for all and another rank was quicker.
[[noreturn]] void fail_together(Store& store, int rank, Audience audience,
                                const std::exception& failure);

// launch::report_for_all, as this program's.
void report_for_all(Store& store, const std::string& text, int code);

}  // namespace kolo::bench
