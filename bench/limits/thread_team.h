// Threads bound to cores that start together, again and again; each round takes as long as its
// slowest.
#pragma once

#include <functional>
#include <vector>

namespace kolo::bench {

struct Round {
  std::function<void(int thread)> prepare;  // not timed; empty: nothing to prepare
  std::function<void(int thread)> work;     // timed, after all are prepared
};

// The longest time of any thread, in microseconds, for each of `rounds` rounds after one that is
// not counted. What a thread throws is thrown here.
std::vector<double> time_together(int threads, int rounds, const Round& round);

// Rounds for about that many seconds, between 3 and 1000, when one takes `us` microseconds.
int rounds_for(double seconds, double us);

// The same, of as many rounds as fit, with what prepares them: by the quickest of a short trial, as
// one that was interrupted says nothing. No more than 3 begin after 3 times `seconds`, however long
// others have the cores.
std::vector<double> time_for(int threads, double seconds, const Round& round);

}  // namespace kolo::bench
