// Binomial-tree broadcast, pipelined.
//
// Ranks are numbered from the root. Whoever has the data passes it on to the rank whose number
// differs in one higher bit: so the parent of v is v without its lowest set bit, and its children
// are v + 1, v + 2, v + 4, ... below that bit. The child with the largest subtree is served first.
// The data streams through the tree segment by segment: a rank passes a segment on while its parent
// sends it the next.
//
// log2(n) hops for the first segment; the root sends at most ceil(log2(n)) times the data. (A chain
// sends it once, but takes n - 1 hops.)
//
// Source: as old as message passing; the pipelined form is in Open MPI's coll/base and in Traeff
// and Ripke, "Optimal broadcast for fully connected networks", 2005.
#include "collectives/algorithms/binomial_tree.h"

#include <vector>

namespace kolo {
namespace {

// Children of `v` in a tree over `size` numbers, the largest subtree first.
std::vector<int> children(int v, int size) {
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

int from_root(int rank, int size, int root) { return (rank - root + size) % size; }
std::int16_t to_rank(int v, int size, int root) {
  return static_cast<std::int16_t>((v + root) % size);
}

}  // namespace

Schedule binomial_tree_broadcast(const ScheduleRequest& request) {
  Schedule schedule;
  schedule.collective = Collective::kBroadcast;
  schedule.algorithm = "binomial_tree";
  schedule.rank = request.rank;
  schedule.size = request.size;
  const int v = from_root(request.rank, request.size, request.root);
  if (v != 0) {
    Step receive;
    receive.kind = StepKind::kReceive;
    receive.from = to_rank(v & (v - 1), request.size, request.root);
    receive.out = {Place::kOutput, 0};
    schedule.steps.push_back(receive);
  }
  for (const int child : children(v, request.size)) {
    Step send;
    send.kind = StepKind::kSend;
    send.to = to_rank(child, request.size, request.root);
    send.in = {Place::kOutput, 0};
    schedule.steps.push_back(send);
  }
  return schedule;
}

std::size_t binomial_tree_broadcast_sent(int rank, int size, int root, std::size_t count) {
  return children(from_root(rank, size, root), size).size() * count;
}

}  // namespace kolo
