// kolo-bench limits: what this machine can do at best, whatever the library.
//
//   memory   all cores together read and write their own memory in place, and copy it: L2, L3, DRAM
//   line     a cache line's round trip between two cores
//   floor    a two-rank all-reduce of private buffers through shared memory, with nothing around it
//   tcp      loopback: an 8-byte round trip, and both directions at once
//
// Nothing here uses the libraries of this project.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/measure.h"

namespace kolo::bench {

// One line of the table that is no collective.
struct Limit {
  std::string what;
  std::string variant;
  std::size_t bytes = 0;
  Quantiles time_us;
  double gigabytes_per_second = 0;  // 0 where only time matters
};

std::vector<Limit> memory_limits(bool is_quick);

// All-reduces of 2 ranks that nothing but the machine slows down, as rows of library "floor".
std::vector<Row> shared_memory_floors(bool is_quick);
std::vector<Row> tcp_floors(bool is_quick);

// One of them, in about that many seconds; over TCP with the congestion control that is quicker.
Row shared_memory_floor(std::size_t bytes, double seconds);
Row quickest_tcp_floor(std::size_t bytes, double seconds);

std::vector<Limit> tcp_round_trips();

int run_limits(const Arguments& arguments);

}  // namespace kolo::bench
