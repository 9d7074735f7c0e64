// kolo-bench draw: a picture of an algorithm, from the schedule that runs.
//
// A space-time diagram (SVG): a row per rank, time to the right, a box per segment of a step (what
// is done, to which chunk or segment of it), an arrow per message, as the simulator's clock has it;
// and the table of every rank's steps.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule.h"
#include "collectives/schedule/simulator.h"

namespace kolo::bench {

struct DrawRequest {
  std::string name;  // of the command that measures it: "allreduce"
  Collective collective = Collective::kAllReduce;
  std::string algorithm;  // empty: the first
  int ranks = 6;
  int root = 0;
  int servers = 0;          // push, pull: so many dedicated ones, the first ranks; 0: all serve
  bool has_update = false;  // push, push_pull: servers update the sums
  std::vector<int> hosts;   // by rank, as in ScheduleRequest; empty: one
  bool can_answer = false;  // as over shared memory
  std::size_t bytes = 96 * 1024;
  std::size_t segment_bytes = 16 * 1024;
  Costs costs;
  std::string out;  // the file; empty: NAME_ALGORITHM_RANKS.svg
};

// The hosts of `ranks` ranks: of a number, as many hosts of equal size, one after the other; of a
// list ("0,0,1,1,1"), what it says, the hosts numbered in the order of their first ranks.
// std::invalid_argument for anything else.
std::vector<int> parse_hosts(std::string_view text, int ranks);

// The diagram as a text of SVG. std::invalid_argument where there is no such algorithm, or where it
// cannot be drawn for so many ranks.
std::string diagram(const DrawRequest& request);

// What every rank does, step by step.
std::string step_table(const DrawRequest& request);

// Writes the diagram into its file and the table to standard output. Returns an exit code.
int run_draw(const DrawRequest& request);

}  // namespace kolo::bench
