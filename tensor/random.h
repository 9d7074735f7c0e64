#pragma once

// Random numbers that are the same on every platform: integers and exact arithmetic only, no
// library's distribution, no transcendental function.

#include <cstdint>
#include <string_view>

namespace kolo::tensor {

/// A stream of numbers that depends on seed and name alone (SplitMix64; Steele, Lea, Flood 2014).
class Random {
 public:
  Random(std::uint64_t seed, std::string_view name);

  std::uint64_t next();
  /// Uniform in [-1, 1), 24 bits.
  float uniform();
  /// Mean 0, deviation 1: the sum of twelve uniform 16-bit numbers, an exact sum, whose tails end
  /// at 6.
  float normal();

 private:
  std::uint64_t state_;
};

}  // namespace kolo::tensor
