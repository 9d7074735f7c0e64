// K-nomial tree: broadcast and reduce over a tree that is flatter than a binomial one.
//
// Idea. Ranks are numbered from the root, and the numbers are written in base k, the *radix*. The
// parent of a number is the number without its lowest nonzero digit. So its children differ from it
// in one digit below that. With radix 2 it is the binomial tree. As there, a broadcast serves the
// child with the largest subtree first, a reduce receives from it last, and the data streams
// through the tree segment by segment.
//
// Cost. ceil(log_k(n)) hops for the first segment, but up to (k - 1) ceil(log_k(n)) sends at the
// root. It pays if the latency is long compared with the transfer of a segment, or if many ranks
// read the same memory. Reduce: every rank except the root sends the data once.
//
// Source: the k-nomial trees of Open MPI's coll/base and of MPICH's "tree" algorithms.
#include "collectives/algorithms/knomial_tree.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

// Position of one rank in the tree; peers are ranks, not numbers.
class Seat {
 public:
  Seat(int rank, int size, int root, int radix)
      : size_(size), root_(root), radix_(radix), number_((rank - root + size) % size) {
    if (radix < 2) throw std::invalid_argument("a k-nomial tree needs a radix of at least 2");
  }

  bool is_root() const { return number_ == 0; }

  int parent() const {
    const int unit = lowest_unit();
    return rank_of(number_ - number_ / unit % radix_ * unit);
  }

  // The largest subtree first.
  std::vector<int> children() const {
    std::vector<int> found;
    const int end = is_root() ? size_ : lowest_unit();
    for (int unit = 1; unit < end; unit *= radix_) {
      for (int digit = 1; digit < radix_ && number_ + digit * unit < size_; ++digit) {
        found.push_back(rank_of(number_ + digit * unit));
      }
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

 private:
  // The place value of the lowest nonzero digit. Not for the root, which has none.
  int lowest_unit() const {
    int unit = 1;
    while (number_ / unit % radix_ == 0) unit *= radix_;
    return unit;
  }
  int rank_of(int number) const { return (number + root_) % size_; }

  int size_;
  int root_;
  int radix_;
  int number_;
};

Schedule begin(const ScheduleRequest& request, Collective collective) {
  Schedule schedule;
  schedule.collective = collective;
  schedule.algorithm = "knomial_tree";
  schedule.rank = request.rank;
  schedule.size = request.size;
  schedule.contributions = request.size;
  return schedule;
}

}  // namespace

Schedule knomial_tree_broadcast(const ScheduleRequest& request, int radix) {
  Schedule schedule = begin(request, Collective::kBroadcast);
  schedule.leaves_from_memory = true;
  const Seat seat(request.rank, request.size, request.root, radix);
  schedule.output = {0, 1};
  if (seat.is_root()) schedule.input = {0, 1};
  if (!seat.is_root()) schedule.steps.push_back(receive(seat.parent(), output(0)));
  for (const int child : seat.children()) schedule.steps.push_back(send(child, output(0)));
  return schedule;
}

Schedule knomial_tree_reduce(const ScheduleRequest& request, int radix) {
  Schedule schedule = begin(request, Collective::kReduce);
  schedule.leaves_from_memory = request.size <= 2;
  schedule.input = {0, 1};
  const Seat seat(request.rank, request.size, request.root, radix);
  if (seat.is_root()) schedule.output = {0, 1};
  std::vector<int> children = seat.children();
  std::reverse(children.begin(), children.end());
  if (children.empty()) {
    schedule.steps.push_back(seat.is_root() ? final(copy(input(0), output(0)))
                                            : send(seat.parent(), input(0)));
    return schedule;
  }
  Operand partial = input(0);
  for (std::size_t k = 0; k + 1 < children.size(); ++k) {
    schedule.steps.push_back(receive_reduce(children[k], partial, scratch(0)));
    partial = scratch(0);
  }
  const int last = children.back();
  schedule.steps.push_back(seat.is_root() ? final(receive_reduce(last, partial, output(0)))
                                          : receive_reduce_send(last, seat.parent(), partial));
  return schedule;
}

std::size_t knomial_tree_broadcast_sent(int rank, int size, int root, int radix,
                                        std::size_t count) {
  return Seat(rank, size, root, radix).children().size() * count;
}

std::size_t knomial_tree_reduce_sent(int rank, int root, std::size_t count) {
  return rank == root ? 0 : count;
}

}  // namespace kolo::inline v0
