#include "train/loop/hash.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

namespace kolo::train {
namespace {

constexpr std::size_t kLanes = 4;  // independent multiplications, to hide their latency
constexpr std::uint64_t kPrime = 0x9fb21c651e98df25u;

}  // namespace

std::uint64_t hash_of(std::span<const float> values) {
  std::array<std::uint64_t, kLanes> lanes{1, 2, 3, 4};
  std::array<std::uint64_t, kLanes> words{};
  const std::size_t step = sizeof(words) / sizeof(float);
  std::size_t i = 0;
  for (; i + step <= values.size(); i += step) {
    std::memcpy(words.data(), values.data() + i, sizeof(words));
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = std::rotl((lanes[lane] ^ words[lane]) * kPrime, 29);
    }
  }
  std::uint64_t hash = mix(values.size());
  for (const std::uint64_t lane : lanes) hash = mix(hash ^ lane);
  for (; i < values.size(); ++i) hash = mix(hash ^ std::bit_cast<std::uint32_t>(values[i]));
  return hash;
}

std::string hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace kolo::train
