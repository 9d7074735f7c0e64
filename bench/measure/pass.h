// A turn of one library: iterations to warm up, and then those that count. What is asked of whoever
// plays it, and what came of it; both travel as text where the library lives in other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/library.h"

namespace kolo::bench {

struct PassRequest {
  Problem problem;
  int warmup = 1;              // iterations that do not count; one at least where `iterations` is 0
  std::size_t iterations = 0;  // that count; 0: as many as fit into `seconds`
  double seconds = 0.5;        // a pass ends after 3 times that; 0: with the last iteration
  bool is_checked = true;
  bool checks_waiting = false;  // of a barrier: that nobody leaves before all have come
  std::uint32_t iteration = 0;  // of the whole run, so far: no two fill the buffers alike
};

struct PassResult {
  double first_us = 0;           // its first iteration, warm-up included
  std::vector<double> times_us;  // of those that count, the longest over the ranks
  std::uint64_t wrong = 0;       // elements, over all ranks and iterations
  std::uint32_t iteration = 0;   // of the whole run, afterwards
};

std::string to_text(const PassRequest& turn);
std::string to_text(const PassResult& result);

// Of a text that to_text did not write: std::invalid_argument.
PassRequest parse_pass_request(const std::string& text);
PassResult parse_pass_result(const std::string& text);

}  // namespace kolo::bench
