// Pseudorandom numbers that depend only on their arguments, equal on all machines.
#pragma once

#include <cstdint>

namespace kolo::inline v0::decorators {

// splitmix64's step (Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// From a seed and the `number`-th segment from one rank to another.
constexpr std::uint64_t mixed(std::uint64_t seed, int from, int to, std::uint64_t number) {
  const auto pair = (static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint64_t>(to);
  return mixed(mixed(seed ^ mixed(pair)) + number);
}

}  // namespace kolo::inline v0::decorators
