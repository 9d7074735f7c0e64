// Recursive doubling: all-reduce in log2(n) exchanges of all the data.
//
// Idea. In exchange k the partners whose numbers differ in bit k send each other their partial
// sums, and both combine the two. After it, 2^(k + 1) neighbours hold the same sum. If n is not a
// power of two, surplus ranks send their data to a participant first (participants.h).
//
// Both partners combine lower number op higher number. So the tree of sums, and its bits, are the
// same on every rank. (A sum commutes, but NaNs with different bits do not, nor do zeros of
// different sign in a minimum.)
//
// Cost. log2(n) hops, and two more if n is not a power of two: the lowest latency without direct
// exchange among all ranks. Every rank sends the data log2(n) times, so it is for short data. A
// receive is staged one turn behind its send, so that longer data streams through. The partial sums
// wait in the output; what is sent from there is a copy.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", 2005.
#include "collectives/algorithms/recursive_doubling.h"

#include <bit>

#include "collectives/algorithms/participants.h"
#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

// The number of exchanges of each participant.
int exchanges_of(int size) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(size))) - 1;
}

Participants participants_of(int size) { return {size, 1 << exchanges_of(size)}; }

}  // namespace

Schedule recursive_doubling_all_reduce(const ScheduleRequest& request) {
  Schedule schedule;
  schedule.collective = Collective::kAllReduce;
  schedule.algorithm = "recursive_doubling";
  schedule.rank = request.rank;
  schedule.size = request.size;
  schedule.contributions = request.size;
  schedule.input = schedule.output = {0, 1};
  auto& program = schedule.steps;
  if (request.size == 1) {
    program.push_back(final(copy(input(0), output(0))));
    return schedule;
  }
  const Participants numbers = participants_of(request.size);
  const int exchanges = exchanges_of(request.size);
  const int first = numbers.surplus() > 0 ? 1 : 0;
  const int last = first + exchanges;
  if (numbers.is_surplus(request.rank)) {
    program.push_back(send(request.rank - 1, input(0)));
    program.push_back(at_stage(last + 1, receive(request.rank - 1, output(0))));
    return schedule;
  }
  Operand partial = input(0);
  if (numbers.is_paired(request.rank)) {
    program.push_back(at_stage(1, receive_reduce(request.rank + 1, partial, output(0))));
    partial = output(0);
  }
  const int mine = numbers.number(request.rank);
  for (int k = 0; k < exchanges; ++k) {
    const int theirs = mine ^ (1 << k);
    const int partner = numbers.rank(theirs);
    const Step take = in_last_if(theirs < mine, receive_reduce(partner, partial, output(0)));
    program.push_back(at_stage(first + k, copied(send(partner, partial))));
    program.push_back(at_stage(first + k + 1, final_if(first + k + 1 == last, take)));
    partial = output(0);
  }
  if (numbers.is_paired(request.rank)) {
    program.push_back(at_stage(last, send(request.rank + 1, output(0))));
  }
  return schedule;
}

std::size_t recursive_doubling_all_reduce_sent(int rank, int size, std::size_t count) {
  const Participants numbers = participants_of(size);
  if (numbers.is_surplus(rank)) return count;
  const int times = exchanges_of(size) + (numbers.is_paired(rank) ? 1 : 0);
  return static_cast<std::size_t>(times) * count;
}

}  // namespace kolo::inline v0
