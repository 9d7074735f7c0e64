// Scatter and all-gather: a broadcast in which all ranks help to send.
//
// Ranks are numbered from the root; number v *owns* chunk v. A binomial tree scatters: v gets the
// chunks of its subtree (v and as many after it as the tree has below it), and sends each child
// those of the child's. Then the chunks go round a ring. Ranks keep what they pass on in the
// scatter, so the ring leaves out what the next rank has already; to the root, nothing is sent.
//
// Every rank receives each chunk once: the least there can be. The root sends a little more than
// once the data in the scatter (log2(n) / 2 times for the chunks nearest to it) and once in the
// ring; the others less. A binomial tree's root sends log2(n) times the data, a chain takes n - 1
// hops before anybody at its end has a byte: for long data over many ranks this is between the two.
// Nothing ever waits for a later rank, so segments stream.
//
// Source: Barnett, Shuler, van de Geijn, Gupta, Payne and Watts, "Interprocessor collective
// communication library (InterCom)", 1994; MPICH's scatter-ring-allgather, which sends the root and
// the inner ranks what they have.
#include "collectives/algorithms/scatter_allgather.h"

#include <algorithm>

#include "collectives/algorithms/steps.h"

namespace kolo {
namespace {

using namespace steps;

// Numbers 0 to size - 1, the root's first.
class Numbers {
 public:
  Numbers(int size, int root) : size_(size), root_(root) {}

  int number(int rank) const { return (rank - root_ + size_) % size_; }
  int rank(int number) const { return (number + root_) % size_; }
  int next(int v) const { return (v + 1) % size_; }
  int previous(int v) const { return (v - 1 + size_) % size_; }

  // The chunks that `v` has after the scatter: from `v` up to here.
  int end_of(int v) const { return v == 0 ? size_ : std::min(size_, v + (v & -v)); }
  bool has(int v, int chunk) const { return v <= chunk && chunk < end_of(v); }

  int parent(int v) const { return v & (v - 1); }
  // The child of `v` whose subtree has `chunk`, one of v's but not v itself.
  int child(int v, int chunk) const {
    int bit = 1;
    while (v + 2 * bit <= chunk) bit *= 2;
    return v + bit;
  }

 private:
  int size_;
  int root_;
};

}  // namespace

Schedule scatter_allgather_broadcast(const ScheduleRequest& request) {
  const int n = request.size;
  const Numbers numbers(n, request.root);
  const int mine = numbers.number(request.rank);
  Schedule schedule;
  schedule.collective = Collective::kBroadcast;
  schedule.leaves_from_memory = true;
  schedule.algorithm = "scatter_allgather";
  schedule.rank = request.rank;
  schedule.size = n;
  schedule.chunks = n;
  schedule.output = {0, n};
  if (mine == 0) schedule.input = {0, n};
  const int parent = mine == 0 ? kNobody : numbers.rank(numbers.parent(mine));
  for (int chunk = numbers.end_of(mine) - 1; chunk > mine; --chunk) {
    const int child = numbers.rank(numbers.child(mine, chunk));
    schedule.steps.push_back(mine == 0 ? send(child, output(chunk))
                                       : receive_send(parent, child, output(chunk)));
  }
  if (mine != 0) schedule.steps.push_back(receive(parent, output(mine)));
  const int left = numbers.rank(numbers.previous(mine));
  const int right = numbers.rank(numbers.next(mine));
  for (int k = 0; k < n; ++k) {
    const int chunk = (mine - k + n) % n;
    const bool receives = !numbers.has(mine, chunk);
    const bool sends = !numbers.has(numbers.next(mine), chunk);
    if (receives) {
      schedule.steps.push_back(sends ? receive_send(left, right, output(chunk))
                                     : receive(left, output(chunk)));
    } else if (sends) {
      schedule.steps.push_back(send(right, output(chunk)));
    }
  }
  return schedule;
}

std::size_t scatter_allgather_broadcast_sent(int rank, int size, int root, std::size_t count) {
  const Numbers numbers(size, root);
  const int mine = numbers.number(rank);
  const int next = numbers.next(mine);
  const auto between = [&](int begin, int end) {
    return chunk_begin(count, size, end) - chunk_begin(count, size, begin);
  };
  const std::size_t scattered = between(mine + 1, numbers.end_of(mine));
  return scattered + count - between(next, numbers.end_of(next));
}

}  // namespace kolo
