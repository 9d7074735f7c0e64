// kolo-bench draw: a picture of an algorithm, made from the schedule that runs.
//
// The picture is a space-time diagram (SVG). It has a row per rank, time to the right, a box per
// segment of a step (the action and its chunk or segment), and an arrow per message. Times come
// from the simulator. The steps of every rank are printed as a table.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule.h"
#include "collectives/schedule/simulator.h"

namespace kolo::bench {

struct DrawRequest {
  std::string name;  // its command: "allreduce"
  Collective collective = Collective::kAllReduce;
  std::string algorithm;  // empty: the first
  int ranks = 6;
  int root = 0;
  int servers = 0;          // number of dedicated servers, the first ranks; 0: all serve
  bool has_update = false;  // push, push_pull: servers update the sums
  std::vector<int> hosts;   // by rank, as in ScheduleRequest; empty: one host
  bool can_answer = false;  // peers answer in place, as over shared memory
  std::size_t bytes = 96 * 1024;
  std::size_t segment_bytes = 16 * 1024;
  Costs costs;
  std::string out;  // the file; empty: NAME_ALGORITHM_RANKS.svg
};

// The host of each rank. A number means that many hosts of equal size, one after the other. A list
// ("0,0,1,1,1") gives the host of each rank; hosts are numbered in the order of their first ranks.
// std::invalid_argument for anything else.
std::vector<int> parse_hosts(std::string_view text, int ranks);

// The diagram as SVG text. std::invalid_argument if the algorithm does not exist, or cannot be
// drawn for so many ranks.
std::string diagram(const DrawRequest& request);

// The steps of every rank, as a table.
std::string step_table(const DrawRequest& request);

// Writes the diagram to its file and the table to standard output. Returns an exit code.
int run_draw(const DrawRequest& request);

}  // namespace kolo::bench
