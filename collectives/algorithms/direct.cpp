// Direct: gather and scatter in which every rank talks to the root only; and messages.
//
// Idea. In each turn the root handles one segment of every rank's chunk, starting with the rank
// after it. So a slow rank delays the others by at most one segment.
//
// Cost. The root receives (or sends) everything once, which no algorithm can avoid. It has n - 1
// peers where a tree has log2(n). So a tree is better for many ranks with little data. A rank needs
// to know only the length of its own chunk. That is why the forms with uneven chunks use it.
//
// Source: the "linear" gather and scatter of Open MPI's coll/base.
#include "collectives/algorithms/direct.h"

#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

Schedule begin(const ScheduleRequest& request, Collective collective) {
  Schedule schedule;
  schedule.collective = collective;
  schedule.algorithm = "direct";
  schedule.rank = request.rank;
  schedule.size = request.size;
  schedule.chunks = request.size;
  schedule.leaves_from_memory = true;
  return schedule;
}

}  // namespace

Schedule direct_gather(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kGather);
  const int mine = request.rank;
  schedule.input = {mine, 1};
  if (mine != request.root) {
    schedule.steps.push_back(send(request.root, input(mine)));
    return schedule;
  }
  schedule.output = {0, request.size};
  schedule.steps.push_back(copy(input(mine), output(mine)));
  for (int k = 1; k < request.size; ++k) {
    const int peer = (mine + k) % request.size;
    schedule.steps.push_back(receive(peer, output(peer)));
  }
  return schedule;
}

Schedule direct_scatter(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kScatter);
  const int mine = request.rank;
  schedule.output = {mine, 1};
  if (mine != request.root) {
    schedule.steps.push_back(receive(request.root, output(mine)));
    return schedule;
  }
  schedule.input = {0, request.size};
  for (int k = 1; k < request.size; ++k) {
    const int peer = (mine + k) % request.size;
    schedule.steps.push_back(send(peer, input(peer)));
  }
  schedule.steps.push_back(copy(input(mine), output(mine)));
  return schedule;
}

Schedule direct_message(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kMessage);
  schedule.chunks = 1;
  if (request.rank == request.root) {
    schedule.input = {0, 1};
    schedule.steps.push_back(send(request.peer, input(0)));
  } else {
    schedule.output = {0, 1};
    schedule.steps.push_back(receive(request.root, output(0)));
  }
  return schedule;
}

std::size_t direct_gather_sent(int rank, int root, std::size_t mine) {
  return rank == root ? 0 : mine;
}

std::size_t direct_scatter_sent(int rank, int root, std::size_t roots, std::size_t all) {
  return rank == root ? all - roots : 0;
}

}  // namespace kolo::inline v0
