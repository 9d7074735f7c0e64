// Flags of `kolo-train crossover`, and their parser.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/experiment/prediction.h"

namespace kolo::train {

struct CrossoverOptions {
  int ranks = 4;           // workers, and the most dedicated servers
  std::int64_t bytes = 0;  // of the gradients
  std::string shape;       // of the flag, or of KOLO_SHAPE
  Network network;         // of the shape
  std::string transport = "auto";
  std::string report;  // folder; empty: none
  std::string help;    // text to print, for --help; the other members then mean nothing

  int processes() const { return 2 * ranks; }
};

// `arguments`: "crossover" and its flags. Checks the shape and the transport. Throws
// UsageError.
CrossoverOptions parse_crossover(const std::vector<std::string>& arguments);

}  // namespace kolo::train
