// Pairwise all-to-all: in step k every rank sends to the rank k places to its right, and receives
// from the one k places to its left.
//
// At any time every rank has one rank to send to and one to receive from, so that no receiver is
// flooded. All steps work on a segment each in a turn, which keeps all channels busy with long
// chunks.
//
// n - 1 steps; every chunk travels once, straight: the least bytes there can be. Short chunks in
// many ranks prefer Bruck's log2(n) steps. A rank has to know the lengths of its own chunks only:
// that is why the form with uneven chunks runs here.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", 2005.
#include "collectives/algorithms/pairwise.h"

#include "collectives/algorithms/steps.h"

namespace kolo {

using namespace steps;

Schedule pairwise_all_to_all(const ScheduleRequest& request) {
  const int n = request.size;
  const int mine = request.rank;
  Schedule schedule;
  schedule.collective = Collective::kAllToAll;
  schedule.algorithm = "pairwise";
  schedule.rank = mine;
  schedule.size = n;
  schedule.chunks = 2 * n;
  schedule.spans = 2;
  schedule.input = {0, n};
  schedule.output = {n, n};
  for (int k = 1; k < n; ++k) {
    const int right = (mine + k) % n;
    const int left = (mine - k + n) % n;
    schedule.steps.push_back(send(right, input(right)));
    schedule.steps.push_back(receive(left, output(n + left)));
  }
  schedule.steps.push_back(copy(input(mine), output(n + mine)));
  return schedule;
}

std::size_t pairwise_all_to_all_sent(std::size_t gives, std::size_t keeps) { return gives - keeps; }

}  // namespace kolo
