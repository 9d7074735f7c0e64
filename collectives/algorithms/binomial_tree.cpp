// Binomial tree: broadcast, reduce, gather and scatter, pipelined.
//
// Idea. Ranks are *numbered* from the root. A rank that has the data sends it to the ranks whose
// number differs in one higher bit. So the parent of v is v without its lowest set bit, and its
// children are v + 1, v + 2, v + 4, ... below that bit. A broadcast serves the child with the
// largest subtree first, as its data has the longest way to go; a reduce receives from that child
// last. The data streams through the tree: a rank forwards a segment while the next one arrives.
//
// Cost. log2(n) hops for the first segment. Broadcast: the root sends at most ceil(log2(n)) times
// the data. (A chain sends it once, but takes n - 1 hops.) Reduce: every rank except the root sends
// the data once. Gather and scatter: a rank forwards the chunks of its whole subtree; the root has
// log2(n) peers instead of n - 1.
//
// Source: folklore; the pipelined form is in Open MPI's coll/base and in Traeff and Ripke, "Optimal
// broadcast for fully connected networks", 2005.
#include "collectives/algorithms/binomial_tree.h"

#include <utility>
#include <vector>

#include "collectives/algorithms/knomial_tree.h"
#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

// The children of number `v` in a tree over `size` numbers, the largest subtree first.
std::vector<int> children_of(int v, int size) {
  std::vector<int> found;
  int limit = v & -v;
  if (v == 0) {
    for (limit = 1; limit < size; limit *= 2) {
    }
  }
  for (int bit = limit / 2; bit > 0; bit /= 2) {
    if (v + bit < size) found.push_back(v + bit);
  }
  return found;
}

// Position of one rank in the tree; peers are ranks, not numbers.
class Seat {
 public:
  Seat(int rank, int size, int root)
      : size_(size), root_(root), number_((rank - root + size) % size) {}
  explicit Seat(const ScheduleRequest& request) : Seat(request.rank, request.size, request.root) {}

  bool is_root() const { return number_ == 0; }
  int parent() const { return rank_of(number_ & (number_ - 1)); }
  std::vector<int> children() const { return ranks_of(children_of(number_, size_)); }

  // The ranks of the subtree of `rank`, itself first, in the order in which their chunks travel.
  std::vector<int> below(int rank) const {
    std::vector<int> numbers;
    collect((rank - root_ + size_) % size_, numbers);
    return ranks_of(std::move(numbers));
  }

 private:
  void collect(int number, std::vector<int>& numbers) const {
    numbers.push_back(number);
    for (const int child : children_of(number, size_)) collect(child, numbers);
  }

  int rank_of(int number) const { return (number + root_) % size_; }
  std::vector<int> ranks_of(std::vector<int> numbers) const {
    for (int& number : numbers) number = rank_of(number);
    return numbers;
  }

  int size_;
  int root_;
  int number_;
};

Schedule begin(const ScheduleRequest& request, Collective collective, int chunks) {
  Schedule schedule;
  schedule.collective = collective;
  schedule.algorithm = "binomial_tree";
  schedule.rank = request.rank;
  schedule.size = request.size;
  schedule.chunks = chunks;
  schedule.leaves_from_memory = request.size <= 3;  // no rank forwards another rank's chunk
  return schedule;
}

// Broadcast and reduce use the k-nomial tree with radix 2.
constexpr int kRadix = 2;

Schedule renamed(Schedule schedule) {
  schedule.algorithm = "binomial_tree";
  return schedule;
}

}  // namespace

Schedule binomial_tree_broadcast(const ScheduleRequest& request) {
  return renamed(knomial_tree_broadcast(request, kRadix));
}

Schedule binomial_tree_reduce(const ScheduleRequest& request) {
  return renamed(knomial_tree_reduce(request, kRadix));
}

Schedule binomial_tree_gather(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kGather, request.size);
  schedule.input = {request.rank, 1};
  const Seat seat(request);
  if (seat.is_root()) schedule.output = {0, request.size};
  const Operand mine = input(request.rank);
  schedule.steps.push_back(seat.is_root() ? copy(mine, output(request.rank))
                                          : send(seat.parent(), mine));
  for (const int child : seat.children()) {
    for (const int rank : seat.below(child)) {
      schedule.steps.push_back(seat.is_root() ? receive(child, output(rank))
                                              : pass_on(child, seat.parent(), rank));
    }
  }
  return schedule;
}

Schedule binomial_tree_scatter(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kScatter, request.size);
  schedule.output = {request.rank, 1};
  const Seat seat(request);
  if (seat.is_root()) schedule.input = {0, request.size};
  const Operand mine = output(request.rank);
  if (!seat.is_root()) schedule.steps.push_back(receive(seat.parent(), mine));
  for (const int child : seat.children()) {
    for (const int rank : seat.below(child)) {
      schedule.steps.push_back(seat.is_root() ? send(child, input(rank))
                                              : pass_on(seat.parent(), child, rank));
    }
  }
  if (seat.is_root()) schedule.steps.push_back(copy(input(request.rank), mine));
  return schedule;
}

std::size_t binomial_tree_broadcast_sent(int rank, int size, int root, std::size_t count) {
  return knomial_tree_broadcast_sent(rank, size, root, kRadix, count);
}

std::size_t binomial_tree_reduce_sent(int rank, int root, std::size_t count) {
  return knomial_tree_reduce_sent(rank, root, count);
}

std::size_t binomial_tree_gather_sent(int rank, int size, int root, std::size_t count) {
  if (rank == root) return 0;
  std::size_t sent = 0;
  for (const int below : Seat(rank, size, root).below(rank)) {
    sent += chunk_count(count, size, below);
  }
  return sent;
}

std::size_t binomial_tree_scatter_sent(int rank, int size, int root, std::size_t count) {
  std::size_t sent = 0;
  for (const int below : Seat(rank, size, root).below(rank)) {
    if (below != rank) sent += chunk_count(count, size, below);
  }
  return sent;
}

}  // namespace kolo::inline v0
