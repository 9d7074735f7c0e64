// Proof of every row of the algorithm table: the programs it makes, for which sizes, counts and
// segments, and the elements that each rank must send.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/schedule/checker.h"

namespace kolo::test {

// One program and the cases to prove for it: every count with every segment length, out of place
// and, where the collective allows it, in place.
struct Trial {
  int size = 1;
  int root = 0;
  int peer = 0;  // message
  // push, pull: dedicated servers, which are the first ranks; 0: every rank serves
  int servers = 0;
  bool is_balanced = false;  // the workers are smaller servers too
  bool can_answer = false;
  bool has_update = false;
  std::vector<int> hosts;  // by rank; empty: one host
  std::vector<std::size_t> counts;
  std::vector<std::size_t> segments;  // in elements
  bool in_place = true;

  std::size_t proofs() const { return counts.size() * segments.size() * (in_place ? 2 : 1); }
};

// The number of elements that `rank` sends, by the algorithm's formula.
using Formula = std::size_t (*)(const Trial& trial, int rank, std::size_t count,
                                std::size_t segment);

// Null if this file has no formula for a row of the algorithm table.
Formula formula_of(Collective collective, std::string_view name);

// Sizes 1 to 64, and 128, 255 and 256.
std::vector<Trial> trials_of(const Algorithm& algorithm);

// The first fault, with its trial; empty if everything is proved.
std::string disproof_of(const Algorithm& algorithm, const Trial& trial);

// The table of proofs, as collectives/README.md shows it: a line per collective.
std::vector<std::string> table_of_proofs();

}  // namespace kolo::test
