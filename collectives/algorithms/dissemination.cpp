// Dissemination barrier.
//
// Idea. In round k every rank sends one element to the rank 2^k places to its right, and waits for
// one from the rank 2^k places to its left. After round k a rank knows that 2^(k+1) ranks have
// entered the barrier, itself included. After ceil(log2(n)) rounds it knows that all ranks have
// entered. There is no root and no second phase.
//
// Cost. ceil(log2(n)) hops, and one message per rank and round.
//
// Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988.
#include "collectives/algorithms/dissemination.h"

namespace kolo::inline v0 {

Schedule dissemination_barrier(const ScheduleRequest& request) {
  Schedule schedule;
  schedule.collective = Collective::kBarrier;
  schedule.algorithm = "dissemination";
  schedule.rank = request.rank;
  schedule.size = request.size;
  schedule.chunks = kBarrierCount;
  for (int distance = 1; distance < request.size; distance *= 2) {
    Step send;
    send.kind = StepKind::kSend;
    send.to = static_cast<std::int16_t>((request.rank + distance) % request.size);
    Step receive;
    receive.kind = StepKind::kReceive;
    receive.from =
        static_cast<std::int16_t>((request.rank - distance + request.size) % request.size);
    // The value does not matter.
    send.in = {Place::kScratch, 0};
    receive.chunk = 1;
    receive.out = {Place::kScratch, 1};
    schedule.steps.push_back(send);
    schedule.steps.push_back(receive);
  }
  return schedule;
}

int dissemination_barrier_sent(int size) {
  int rounds = 0;
  for (int distance = 1; distance < size; distance *= 2) ++rounds;
  return rounds;
}

}  // namespace kolo::inline v0
