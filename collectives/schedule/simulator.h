// Simulator: predicts when each step of a schedule runs, for all ranks at once.
//
// The model uses the terms of LogGP (Alexandrov et al. 1995). A step that handles a segment keeps
// its rank busy for an overhead, and for every byte that it copies or reduces. A segment arrives
// one latency after its sending step ends. Its credit returns one latency after the receiver
// releases it. Ranks are sequential, and channels have one writer and one reader. So the result
// does not depend on the order in which steps are simulated (as in checker.h). Segments of a
// single-segment operation that travel together (schedule/coalesced_order.h) arrive together.
//
// If ranks share cores, the ranks of a core take turns. A blocked rank yields to the next, whether
// that one is ready or not. The assignment of ranks to cores is one plausible choice of many.
// Channels that share a wire are not modelled.
//
// Used for pictures of algorithms, and by the planner for prices.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "collectives/costs.h"
#include "collectives/schedule.h"
#include "collectives/schedule/layout.h"

namespace kolo::inline v0 {

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
  double begin_us = 0;  // when all that it waits for has arrived
  double end_us = 0;
};

// A segment or an answer in flight, from the end of its sending step to its arrival.
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
  std::vector<double> busy_us;  // time without waits
  std::vector<Event> events;
  std::vector<Passage> passages;
};

// `program`: the schedule of every rank, in order. Throws std::invalid_argument if it cannot finish
// (the checker gives the reason).
Simulation simulate(std::span<const Schedule> program, const Costs& costs,
                    const SimulationOptions& options);

}  // namespace kolo::inline v0
