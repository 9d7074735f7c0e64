// Test data and checks of one rank's rounds in a floor, with the pattern of library measurements.
// The result of each round is checked before the next one.
#pragma once

#include <cstdint>

#include "bench/measure/pattern.h"

namespace kolo::bench {

class ResultChecks {
 public:
  ResultChecks() = default;
  explicit ResultChecks(int contributions) { pattern_.contributions = contributions; }

  // Counts wrong elements of the previous round, if there was one, and begins the next.
  template <typename Count>
  void next(const Count& count_wrong) {
    if (pattern_.salt > 0) wrong_ += count_wrong(pattern_);
    ++pattern_.salt;
  }

  // The pattern of the current round.
  const Pattern& pattern() const { return pattern_; }
  std::uint64_t wrong() const { return wrong_; }

 private:
  Pattern pattern_;  // float32 sums
  std::uint64_t wrong_ = 0;
};

}  // namespace kolo::bench
