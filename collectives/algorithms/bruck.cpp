// Bruck's all-to-all: ceil(log2(n)) rounds instead of n - 1 steps, for chunks that travel farther.
//
// A chunk for the rank j places to the right has the *distance* j, and gets there in hops of powers
// of two: in round k it moves 2^k places on if bit k of j is set. In that round a rank sends to one
// rank only, all chunks whose distance has bit k, and receives as many from one. The first hop of a
// chunk starts in its giver's input, the last one ends in its taker's output; in between it waits
// in the scratch of its distance, where it takes the place of the one that has just left. So
// nothing is rotated, before or after.
//
// In place, the chunk that arrives with distance j takes the place of the one whose distance is
// n - j, which must have left by then. One chunk a round at the most has not: these few begin with
// a copy into the scratch of their distance.
//
// ceil(log2(n)) messages a rank where pairwise exchange has n - 1; but every element travels as
// many hops as its distance has bits, so that about n / 2 chunks go out in each round: log2(n) / 2
// times the bytes. For short chunks. All chunks have to be equally long.
//
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", 1997.
#include "collectives/algorithms/bruck.h"

#include <bit>

#include "collectives/algorithms/steps.h"

namespace kolo {

using namespace steps;

namespace {

// Whether a chunk of distance `j` leaves, in the round of its lowest bit, after the one has arrived
// that takes its place, in the round of its distance's highest bit.
bool leaves_late(int j, int size) {
  const int leaves = j & -j;
  const int taker = size - j;
  const int arrives = static_cast<int>(std::bit_floor(static_cast<unsigned>(taker)));
  return leaves > arrives || (leaves == arrives && j > taker);
}

// Where a chunk of distance `j` lies before its hop of `hop` places, and after.
Operand before(int j, int hop, const ScheduleRequest& request) {
  const bool is_first = j % hop == 0 && !leaves_late(j, request.size);
  return is_first ? input((request.rank + j) % request.size) : scratch(j);
}

Operand after(int j, int hop, const ScheduleRequest& request) {
  const bool is_last = j < 2 * hop;
  const int giver = (request.rank - j + request.size) % request.size;
  return is_last ? output(request.size + giver) : scratch(j);
}

}  // namespace

Schedule bruck_all_to_all(const ScheduleRequest& request) {
  const int n = request.size;
  const int mine = request.rank;
  Schedule schedule;
  schedule.collective = Collective::kAllToAll;
  schedule.algorithm = "bruck";
  schedule.rank = mine;
  schedule.size = n;
  schedule.chunks = 2 * n;
  schedule.spans = 2;
  schedule.input = {0, n};
  schedule.output = {n, n};
  for (int j = 1; j < n; ++j) {
    if (leaves_late(j, n)) schedule.steps.push_back(copy(input((mine + j) % n), scratch(j)));
  }
  for (int hop = 1; hop < n; hop *= 2) {
    const int to = (mine + hop) % n;
    const int from = (mine - hop + n) % n;
    for (int j = hop; j < n; ++j) {
      if ((j & hop) == 0) continue;
      schedule.steps.push_back(send(to, before(j, hop, request)));
      schedule.steps.push_back(receive(from, after(j, hop, request)));
    }
  }
  schedule.steps.push_back(copy(input(mine), output(n + mine)));
  return schedule;
}

std::size_t bruck_all_to_all_sent(int size, std::size_t share) {
  std::size_t hops = 0;
  for (int j = 1; j < size; ++j) hops += static_cast<std::size_t>(std::popcount(unsigned(j)));
  return hops * share;
}

}  // namespace kolo
