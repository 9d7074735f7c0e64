// Recursive doubling: all-reduce in log2(n) exchanges of everything.
//
// In exchange k partners whose numbers differ in bit k give each other what they have, and both
// combine the two; after it, 2^k neighbours hold the same sum. Where n is no power of two, the
// first ranks stand in pairs: the upper of a pair, a *surplus* rank, gives its data to the lower
// beforehand, and has the result from it afterwards. The others have numbers in the order of their
// ranks.
//
// Both partners combine lower number op higher number, so the tree of sums, and its bits, are the
// same on every rank. (A sum commutes, but NaNs with different bits do not, nor do zeros of
// different sign in a minimum.)
//
// log2(n) hops, and two more where n is no power of two: the least latency there can be without
// talking to all. Every rank sends the data log2(n) times: so it is for short data. Each hop takes
// a turn (its receive is staged one behind its send), so that longer data streams through; the
// partial sums wait in the output, and what is sent from there is a copy.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", 2005.
#include "collectives/algorithms/recursive_doubling.h"

#include <bit>

#include "collectives/algorithms/steps.h"

namespace kolo {
namespace {

using namespace steps;

// Who takes part in the exchanges. The first 2 * surplus() ranks stand in pairs.
class Numbers {
 public:
  explicit Numbers(int size)
      : exchanges_(static_cast<int>(std::bit_width(static_cast<unsigned>(size))) - 1),
        surplus_(size - participants()) {}

  int exchanges() const { return exchanges_; }
  int participants() const { return 1 << exchanges_; }
  int surplus() const { return surplus_; }
  bool is_paired(int rank) const { return rank < 2 * surplus_; }
  bool is_surplus(int rank) const { return is_paired(rank) && rank % 2 == 1; }
  int number(int rank) const { return is_paired(rank) ? rank / 2 : rank - surplus_; }
  int rank(int number) const { return number < surplus_ ? 2 * number : number + surplus_; }

 private:
  int exchanges_;
  int surplus_;
};

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
  const Numbers numbers(request.size);
  const int first = numbers.surplus() > 0 ? 1 : 0;
  const int last = first + numbers.exchanges();
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
  for (int k = 0; k < numbers.exchanges(); ++k) {
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
  const Numbers numbers(size);
  if (numbers.is_surplus(rank)) return count;
  const int times = numbers.exchanges() + (numbers.is_paired(rank) ? 1 : 0);
  return static_cast<std::size_t>(times) * count;
}

}  // namespace kolo
