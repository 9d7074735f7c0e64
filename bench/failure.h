// How a benchmark fails: all ranks end, and one of them says why.
#pragma once

#include <exception>
#include <string>

#include "transports/rendezvous.h"

namespace kolo::bench {

// What a rank throws instead of its own failure where another rank says the job's.
class SaidByAnotherRank : public std::exception {
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
// SaidByAnotherRank where one speaks for all and another rank was quicker.
[[noreturn]] void fail_together(Store& store, int rank, Audience audience,
                                const std::exception& failure);

// Of ranks of a launcher, which ends all that are left as soon as one has failed: who speaks for
// all says it on standard error, and ends with `code`; the others do not end before that (or 10 s),
// and with the same code (or 1).
void say_for_all(Store& store, const std::string& text, int code);
int wait_until_said(Store& store) noexcept;

}  // namespace kolo::bench
