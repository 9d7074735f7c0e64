#pragma once

// Random numbers that are the same on every platform: uses integers and exact arithmetic only, no
// distributions of the standard library, no transcendental functions.

#include <cstdint>
#include <string_view>

namespace kolo::tensor {

// A sequence of numbers that depends only on seed and name (SplitMix64; Steele, Lea, Flood 2014).
class Random {
 public:
  Random(std::uint64_t seed, std::string_view name);

  std::uint64_t next();
  // Uniform in [-1, 1), 24 bits.
  float uniform();
  // Approximately normal, mean 0, deviation 1: the exact sum of twelve uniform 16-bit numbers. No
  // value is beyond +-6.
  float normal();

 private:
  std::uint64_t state_;
};

}  // namespace kolo::tensor
