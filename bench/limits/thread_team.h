// Team of threads, bound to cores, that run timed rounds together; a round takes as long as its
// slowest thread.
#pragma once

#include <functional>
#include <vector>

namespace kolo::bench {

struct Round {
  std::function<void(int thread)> prepare;  // not timed; may be empty
  std::function<void(int thread)> work;     // timed, starts after all are prepared
};

// For each of `rounds` rounds, the longest time of any thread in microseconds; one more round
// before is not counted. Exceptions of threads are rethrown.
std::vector<double> time_together(int threads, int rounds, const Round& round);

// Number of rounds for about `seconds`, between 3 and 1000, if one takes `us` microseconds.
int rounds_for(double seconds, double us);

// The same with as many rounds as fit into `seconds`, including preparation. The estimate is the
// fastest round of a short trial, as interrupted rounds are too long. After 3 times `seconds` at
// most 3 rounds have begun, however busy the cores are.
std::vector<double> time_for(int threads, double seconds, const Round& round);

}  // namespace kolo::bench
