// Plays a schedule against a clock, for all ranks at once: who does what from when to when.
//
// The model, per rank and in the words of LogGP (Alexandrov et al. 1995): a step that handles a
// segment keeps its rank busy for an overhead and for every byte that it copies or reduces; what is
// sent arrives a latency after its step has ended, and the credit for it comes back a latency after
// the receiver has let it go. Ranks are sequential and channels have one writer and one reader, so
// when things happen does not depend on the order in which they are worked out (as in checker.h).
// Segments of a brief operation that go together (schedule/coalesced_order.h) arrive together.
// Where ranks share cores, each core's ranks have it in turn, and one that cannot go on yields to
// the next, whether that one can or not; who shares with whom is one plausible choice of many.
// Channels that share a wire are not in the model.
//
// For pictures of algorithms, and for prices: what a schedule would take with these costs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "collectives/costs.h"
#include "collectives/schedule.h"
#include "collectives/schedule/layout.h"

namespace kolo {

struct SimulationOptions {
  std::size_t count = 1;  // elements, split evenly
  std::size_t element_bytes = 4;
  std::size_t segment_bytes = 64 * 1024;
  int credit = 4;  // segments in flight per channel and direction
  bool keeps_events = true;
  std::span<const int> hosts = {};  // by rank, as in ScheduleRequest
};

// One segment of one step.
struct Event {
  int rank = 0;
  int step = 0;
  std::size_t segment = 0;
  std::size_t bytes = 0;
  double begin_us = 0;  // once all that it waits for is there
  double end_us = 0;
};

// From the end of the step that sends it to its arrival.
struct Passage {
  int from = 0;
  int to = 0;
  int chunk = 0;
  double sent_us = 0;
  double arrived_us = 0;
  bool is_answer = false;
};

struct Simulation {
  double total_us = 0;
  std::vector<double> rank_us;  // when each rank is done
  std::vector<double> busy_us;  // of which it was not waiting
  std::vector<Event> events;
  std::vector<Passage> passages;
};

// `program`: the schedule of every rank, in order. std::invalid_argument where it cannot come to
// its end (the checker says why).
Simulation simulate(std::span<const Schedule> program, const Costs& costs,
                    const SimulationOptions& options);

}  // namespace kolo
