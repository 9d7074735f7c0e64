// What one rank's rounds of a floor give and must get: patterns as where libraries are measured,
// with the result of every round checked before the next.
#pragma once

#include <cstdint>

#include "bench/measure/pattern.h"

namespace kolo::bench {

class ResultChecks {
 public:
  ResultChecks() = default;
  explicit ResultChecks(int contributions) { pattern_.contributions = contributions; }

  // Counts what was wrong in the round that is over, if there was one, and begins the next.
  template <typename Count>
  void next(const Count& count_wrong) {
    if (pattern_.salt > 0) wrong_ += count_wrong(pattern_);
    ++pattern_.salt;
  }

  // Of the round that has begun.
  const Pattern& pattern() const { return pattern_; }
  std::uint64_t wrong() const { return wrong_; }

 private:
  Pattern pattern_;  // float32 sums
  std::uint64_t wrong_ = 0;
};

}  // namespace kolo::bench
