// 64-bit hash, to prove equality; not cryptographic.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace kolo::train {

// Mixes every bit of `value` into every bit of the result (the finaliser of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// Hash of the bits of values that are added in pieces. All pieces but the last have a multiple of
// 8 values, as arenas have.
struct Hasher {
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};  // independent, to hide their latency
  std::uint64_t rest = 0;                          // of the last values, fewer than 8
  std::uint64_t count = 0;

  void add(std::span<const float> values);
  std::uint64_t value() const;
};

// Hash of the bits of the values, in order (0 and -0 differ, and so do different NaNs). About 10
// GB/s: 10 ms for ResNet-50's parameters.
std::uint64_t hash_of(std::span<const float> values);

// Sixteen hexadecimal digits.
std::string hex(std::uint64_t hash);

}  // namespace kolo::train
