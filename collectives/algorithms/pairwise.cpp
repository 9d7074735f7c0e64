// Pairwise and direct all-to-all: every chunk goes directly from rank to rank, in one of two
// orders.
//
// Idea. *Pairwise*: in round k the ranks r and k - r (modulo n) exchange their chunks. So a rank
// sends to one peer and receives from one peer at a time, and no receiver is flooded. In each turn
// all rounds handle one segment, which keeps all channels busy with long chunks. A chunk is sent
// just before the chunk arrives that takes its place. So in place only one thing changes: copies
// are sent.
//
// *Direct*: a rank sends to all others, and then receives from all. No rank waits for a partner
// that is busy with another one. If ranks share cores and chunks are short, each rank has to run
// only twice (four ranks on two cores, 16 B: 4.6 us instead of 12).
//
// Cost. n - 1 exchanges, pairwise in n rounds (a rank has no partner in the round in which it is
// its own). Every chunk travels once: the fewest bytes possible. For short chunks and many ranks
// Bruck's log2(n) steps are better. A rank needs to know only the lengths of its own chunks. That
// is why the form with uneven chunks uses these.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", 2005; direct is the "linear" one of Open MPI's coll/base.
#include "collectives/algorithms/pairwise.h"

#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {

using namespace steps;

namespace {

Schedule begin(const ScheduleRequest& request, const char* algorithm) {
  const int n = request.size;
  Schedule schedule;
  schedule.collective = Collective::kAllToAll;
  schedule.algorithm = algorithm;
  schedule.rank = request.rank;
  schedule.size = n;
  schedule.chunks = 2 * n;
  schedule.spans = 2;
  schedule.input = {0, n};
  schedule.output = {n, n};
  return schedule;
}

}  // namespace

Schedule pairwise_all_to_all(const ScheduleRequest& request) {
  const int n = request.size;
  const int mine = request.rank;
  Schedule schedule = begin(request, "pairwise");
  for (int k = 0; k < n; ++k) {
    const int peer = (k - mine + n) % n;
    if (peer == mine) continue;
    schedule.steps.push_back(send(peer, input(peer)));
    schedule.steps.push_back(receive(peer, output(n + peer)));
  }
  schedule.steps.push_back(copy(input(mine), output(n + mine)));
  return schedule;
}

Schedule direct_all_to_all(const ScheduleRequest& request) {
  const int n = request.size;
  const int mine = request.rank;
  Schedule schedule = begin(request, "direct");
  for (int k = 1; k < n; ++k) {
    const int peer = (mine + k) % n;
    schedule.steps.push_back(send(peer, input(peer)));
  }
  schedule.steps.push_back(copy(input(mine), output(n + mine)));
  for (int k = 1; k < n; ++k) {
    const int peer = (mine + n - k) % n;
    schedule.steps.push_back(receive(peer, output(n + peer)));
  }
  return schedule;
}

std::size_t pairwise_all_to_all_sent(std::size_t gives, std::size_t keeps) { return gives - keeps; }

}  // namespace kolo::inline v0
