// The proof of every row of the algorithm table: which programs are made of it, for which sizes,
// counts and segments, and what each rank must send.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/schedule/checker.h"

namespace kolo::test {

// A program, and all that is proved of it: every count with every segment length, out of place and,
// where the collective allows it, in place.
struct Trial {
  int size = 1;
  int root = 0;
  int peer = 0;     // message
  int servers = 0;  // push, pull: dedicated, the first ranks; 0: all serve
  bool can_answer = false;
  bool has_update = false;
  std::vector<int> hosts;  // by rank; empty: one
  std::vector<std::size_t> counts;
  std::vector<std::size_t> segments;  // in elements
  bool in_place = true;

  std::size_t proofs() const { return counts.size() * segments.size() * (in_place ? 2 : 1); }
};

// The elements that `rank` sends, as the algorithm's formula has it.
using Formula = std::size_t (*)(const Trial& trial, int rank, std::size_t count,
                                std::size_t segment);

// Null where a row of the algorithm table has no formula here.
Formula formula_of(Collective collective, std::string_view name);

// Sizes 1 to 64, and 128, 255 and 256.
std::vector<Trial> trials_of(const Algorithm& algorithm);

// What is wrong, and with which trial; empty: all is proved.
std::string disproof_of(const Algorithm& algorithm, const Trial& trial);

// The table of what is proved, as it stands in collectives/README.md: a line per collective.
std::vector<std::string> table_of_proofs();

}  // namespace kolo::test
