// Request and result of one pass: warm-up iterations, then counted iterations of one library. Both
// are serialized for worker processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/library.h"

namespace kolo::bench {

struct PassRequest {
  Problem problem;
  int warmup = 1;              // uncounted iterations; at least one if `iterations` is 0
  std::size_t iterations = 0;  // counted ones; 0: as many as fit into `seconds`
  double seconds = 0.5;        // a pass ends after 3 times this; 0: after all iterations
  bool is_checked = true;
  bool checks_waiting = false;  // barrier: check that no rank leaves before all have arrived
  std::uint32_t iteration = 0;  // number within the whole run; each has its own data
};

struct PassResult {
  double first_us = 0;           // the first iteration, even if it is a warm-up
  std::vector<double> times_us;  // counted iterations; each the longest over the ranks
  std::uint64_t wrong = 0;       // elements, over all ranks and iterations
  std::uint32_t iteration = 0;   // number within the whole run, after the pass
};

std::string to_text(const PassRequest& turn);
std::string to_text(const PassResult& result);

// std::invalid_argument for texts that to_text did not write.
PassRequest parse_pass_request(const std::string& text);
PassResult parse_pass_result(const std::string& text);

}  // namespace kolo::bench
