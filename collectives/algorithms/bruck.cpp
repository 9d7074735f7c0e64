// Bruck's all-to-all: ceil(log2(n)) rounds instead of n - 1 steps, at the price of more bytes.
//
// Idea. The *distance* of a chunk is the number j of places to the right that it has to travel. It
// travels in hops of powers of two: in round k it moves 2^k places if bit k of j is set. In that
// round a rank sends all chunks whose distance has bit k to a single rank, and receives as many
// from a single rank. The first hop of a chunk starts in the sender's input; the last hop ends in
// the receiver's output. In between the chunk waits in the scratch of its distance, in place of the
// chunk that has just left. So no data is rotated before or after.
//
// In place, the chunk that arrives with distance j overwrites the chunk of distance n - j, which
// must have left by then. At most one chunk a round has not; these few chunks are copied into the
// scratch of their distance first.
//
// Cost. ceil(log2(n)) messages per rank, where pairwise exchange has n - 1. But every element takes
// as many hops as its distance has bits. So about n / 2 chunks are sent in each round: log2(n) / 2
// times the bytes. For short chunks. All chunks must be equally long.
//
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", 1997.
#include "collectives/algorithms/bruck.h"

#include <bit>

#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {

using namespace steps;

namespace {

// For in-place calls: true if the chunk of distance `j` would be overwritten before it is sent. It
// is sent in the round of the lowest set bit of j. The chunk of distance size - j overwrites it, in
// the round of the highest set bit of size - j. Within a round, chunks move in the order of their
// distances.
bool leaves_late(int j, int size) {
  const int leaves = j & -j;
  const int taker = size - j;
  const int arrives = static_cast<int>(std::bit_floor(static_cast<unsigned>(taker)));
  return leaves > arrives || (leaves == arrives && j > taker);
}

// The place of a chunk of distance `j` before and after its hop of `hop` places.
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

}  // namespace kolo::inline v0
