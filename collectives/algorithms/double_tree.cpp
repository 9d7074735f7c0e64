// Double binary tree: all-reduce, broadcast and reduce with the hops of a tree and the bytes of a
// ring.
//
// Idea. In a binary tree half of the ranks are leaves. In an all-reduce a leaf sends the data once
// (to its parent), but an inner rank sends it three times (to its parent and to two children). So
// there are two trees, one for each half of the data (*chunk* 0 and 1). A rank that is a leaf in
// one tree has children in the other. (With an odd number of places, one rank has children in
// both.)
//
// In the first tree, place v with lowest set bit b has the children v - b / 2 and v + b / 2. A
// child that does not exist is replaced by its own lower child, and so on. So odd places are
// leaves. Place 0 is the root and has one child. The second tree is the same with mirrored places
// if their number is even, and with places shifted by one if it is odd. In a broadcast the trees
// cover all ranks except the root, which sends each half to the root of its tree. A reduce uses the
// same paths backwards.
//
// The receive of a segment runs one turn after its send. Upwards, a place of *depth* d below the
// root works at stage `deepest` - d; downwards, at stage `deepest` + d. So segments follow each
// other without waits although both trees share the ranks. And both ends of a channel have its
// segments in the same order.
//
// Cost. All-reduce: 2 log2(n) hops; a rank sends at most twice the data (one half up in each tree,
// one half down to each of two children). Broadcast and reduce: log2(n) + 1 hops; a rank sends, or
// receives, the data at most once.
//
// Source: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction
// and scan", 2009; these trees are those of NCCL 2.4.
#include "collectives/algorithms/double_tree.h"

#include <algorithm>
#include <vector>

#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

constexpr int kTrees = 2;

// The parent of place `v` in the first tree over `places`; kNobody for place 0.
int parent_of(int v, int places) {
  if (v == 0) return kNobody;
  const int bit = v & -v;
  const int up = (v ^ bit) | (bit << 1);
  return up < places ? up : v ^ bit;
}

// The first or the second tree over `places`.
class Tree {
 public:
  Tree(int which, int places) : is_second_(which == 1), places_(places) {}

  int parent(int place) const {
    const int up = parent_of(turned(place), places_);
    return up == kNobody ? kNobody : turned_back(up);
  }

  std::vector<int> children(int place) const {
    std::vector<int> found;
    for (int other = 0; other < places_; ++other) {
      if (parent(other) == place) found.push_back(other);
    }
    return found;
  }

  int depth(int place) const {
    int depth = 0;
    for (int v = turned(place); v != 0; v = parent_of(v, places_)) ++depth;
    return depth;
  }

  int root() const { return turned_back(0); }

 private:
  bool is_mirrored() const { return places_ % 2 == 0; }
  int turned(int place) const {
    if (!is_second_) return place;
    return is_mirrored() ? places_ - 1 - place : (place - 1 + places_) % places_;
  }
  int turned_back(int v) const {
    if (!is_second_) return v;
    return is_mirrored() ? places_ - 1 - v : (v + 1) % places_;
  }

  bool is_second_;
  int places_;
};

// The greatest depth; both trees have the same shape.
int deepest_of(int places) {
  const Tree tree(0, places);
  int deepest = 0;
  for (int place = 0; place < places; ++place) deepest = std::max(deepest, tree.depth(place));
  return deepest;
}

Schedule begin(const ScheduleRequest& request, Collective collective) {
  Schedule schedule;
  schedule.collective = collective;
  schedule.algorithm = "double_tree";
  schedule.rank = request.rank;
  schedule.size = request.size;
  schedule.chunks = kTrees;
  schedule.input = schedule.output = {0, kTrees};
  schedule.contributions = request.size;
  return schedule;
}

// Adds the children's chunks and sends the sum to the parent. A rank without a parent keeps it.
void reduce_up(Schedule& schedule, int parent, const std::vector<int>& children, int chunk,
               int stage) {
  Operand partial = input(chunk);
  if (children.empty()) {
    schedule.steps.push_back(at_stage(stage, send(parent, partial)));
    return;
  }
  for (std::size_t k = 0; k + 1 < children.size(); ++k) {
    const Step take = receive_reduce(children[k], partial, scratch(chunk));
    schedule.steps.push_back(at_stage(stage, take));
    partial = scratch(chunk);
  }
  const int last = children.back();
  schedule.steps.push_back(at_stage(stage, parent == kNobody
                                               ? final(receive_reduce(last, partial, output(chunk)))
                                               : receive_reduce_send(last, parent, partial)));
}

// Places of the ranks in a broadcast or a reduce: place 0 is the rank after the root.
class Places {
 public:
  Places(int size, int root) : size_(size), root_(root) {}
  int count() const { return size_ - 1; }
  int place(int rank) const { return (rank - root_ - 1 + size_) % size_; }
  int rank(int place) const { return (place + root_ + 1) % size_; }

 private:
  int size_;
  int root_;
};

}  // namespace

Schedule double_tree_all_reduce(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kAllReduce);
  const int deepest = deepest_of(request.size);
  for (int which = 0; which < kTrees && request.size > 1; ++which) {
    const Tree tree(which, request.size);
    const int place = request.rank;
    reduce_up(schedule, tree.parent(place), tree.children(place), which,
              deepest - tree.depth(place));
  }
  for (int which = 0; which < kTrees; ++which) {
    const Tree tree(which, request.size);
    const int stage = deepest + tree.depth(request.rank);
    const int parent = tree.parent(request.rank);
    if (request.size == 1) schedule.steps.push_back(final(copy(input(which), output(which))));
    if (parent != kNobody) {
      schedule.steps.push_back(at_stage(stage, receive(parent, output(which))));
    }
    for (const int child : tree.children(request.rank)) {
      schedule.steps.push_back(at_stage(stage, send(child, output(which))));
    }
  }
  return schedule;
}

Schedule double_tree_broadcast(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kBroadcast);
  schedule.leaves_from_memory = true;
  const bool is_root = request.rank == request.root;
  if (!is_root) schedule.input = {};
  const Places places(request.size, request.root);
  for (int which = 0; which < kTrees && request.size > 1; ++which) {
    const Tree tree(which, places.count());
    if (is_root) {
      schedule.steps.push_back(send(places.rank(tree.root()), output(which)));
      continue;
    }
    const int place = places.place(request.rank);
    const int stage = 1 + tree.depth(place);
    const int parent = tree.parent(place);
    const int giver = parent == kNobody ? request.root : places.rank(parent);
    schedule.steps.push_back(at_stage(stage, receive(giver, output(which))));
    for (const int child : tree.children(place)) {
      schedule.steps.push_back(at_stage(stage, send(places.rank(child), output(which))));
    }
  }
  return schedule;
}

Schedule double_tree_reduce(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kReduce);
  const bool is_root = request.rank == request.root;
  if (!is_root) schedule.output = {};
  const Places places(request.size, request.root);
  const int deepest = deepest_of(places.count());
  for (int which = 0; which < kTrees; ++which) {
    if (request.size == 1) schedule.steps.push_back(final(copy(input(which), output(which))));
    if (request.size == 1) continue;
    const Tree tree(which, places.count());
    if (is_root) {
      reduce_up(schedule, kNobody, {places.rank(tree.root())}, which, deepest + 1);
      continue;
    }
    const int place = places.place(request.rank);
    const int parent = tree.parent(place);
    std::vector<int> children = tree.children(place);
    for (int& child : children) child = places.rank(child);
    reduce_up(schedule, parent == kNobody ? request.root : places.rank(parent), children, which,
              deepest - tree.depth(place));
  }
  return schedule;
}

std::size_t double_tree_all_reduce_sent(int rank, int size, std::size_t count) {
  std::size_t sent = 0;
  for (int which = 0; which < kTrees; ++which) {
    const Tree tree(which, size);
    const std::size_t ups = tree.parent(rank) == kNobody ? 0 : 1;
    sent += (ups + tree.children(rank).size()) * chunk_count(count, kTrees, which);
  }
  return sent;
}

std::size_t double_tree_broadcast_sent(int rank, int size, int root, std::size_t count) {
  if (size == 1) return 0;
  if (rank == root) return count;
  const Places places(size, root);
  std::size_t sent = 0;
  for (int which = 0; which < kTrees; ++which) {
    const Tree tree(which, places.count());
    sent += tree.children(places.place(rank)).size() * chunk_count(count, kTrees, which);
  }
  return sent;
}

std::size_t double_tree_reduce_sent(int rank, int root, std::size_t count) {
  return rank == root ? 0 : count;
}

}  // namespace kolo::inline v0
