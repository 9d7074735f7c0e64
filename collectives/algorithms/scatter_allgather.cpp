// Scatter and all-gather: a broadcast in which all ranks help to send.
//
// Idea. Ranks are *numbered* from the root; number v *owns* chunk v. A binomial tree scatters the
// chunks: v receives the chunks of its subtree (v and the numbers of its descendants, which follow
// it), and sends each child those of the child's subtree. Then the chunks travel around a ring.
// Ranks keep the chunks that they forward in the scatter, so the ring skips chunks that the next
// rank already has. The root receives nothing.
//
// Cost. Every rank receives each chunk once, the minimum. The root sends (n - 1) / n of the data in
// the scatter and again in the ring: about twice the data. Other ranks send at most 1.5 times the
// data. The root of a binomial tree sends log2(n) times the data. A chain takes n - 1 hops until
// its end has the first byte. For long data over many ranks this algorithm lies between the two. No
// rank ever waits for a later rank, so segments stream.
//
// Source: Barnett, Shuler, van de Geijn, Gupta, Payne and Watts, "Interprocessor collective
// communication library (InterCom)", 1994. MPICH's scatter-ring-allgather also sends the root and
// the inner ranks chunks that they already have.
#include "collectives/algorithms/scatter_allgather.h"

#include <algorithm>

#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

// Numbers 0 to size - 1 of the ranks; the root has number 0.
class Numbers {
 public:
  Numbers(int size, int root) : size_(size), root_(root) {}

  int number(int rank) const { return (rank - root_ + size_) % size_; }
  int rank(int number) const { return (number + root_) % size_; }
  int next(int v) const { return (v + 1) % size_; }
  int previous(int v) const { return (v - 1 + size_) % size_; }

  // After the scatter `v` has the chunks from `v` up to, not including, this one.
  int end_of(int v) const { return v == 0 ? size_ : std::min(size_, v + (v & -v)); }
  bool has(int v, int chunk) const { return v <= chunk && chunk < end_of(v); }

  int parent(int v) const { return v & (v - 1); }
  // The child of `v` whose subtree has `chunk`; `chunk` is in the subtree of `v`, and not `v`.
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

}  // namespace kolo::inline v0
