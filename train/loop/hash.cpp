#include "train/loop/hash.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

namespace kolo::train {
namespace {

constexpr std::uint64_t kPrime = 0x9fb21c651e98df25u;

}  // namespace

void Hasher::add(std::span<const float> values) {
  std::array<std::uint64_t, 4> words{};
  const std::size_t step = sizeof(words) / sizeof(float);
  std::size_t i = 0;
  for (; i + step <= values.size(); i += step) {
    std::memcpy(words.data(), values.data() + i, sizeof(words));
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      lanes[lane] = std::rotl((lanes[lane] ^ words[lane]) * kPrime, 29);
    }
  }
  for (; i < values.size(); ++i) rest = mix(rest ^ std::bit_cast<std::uint32_t>(values[i]));
  count += values.size();
}

std::uint64_t Hasher::value() const {
  std::uint64_t hash = mix(count);
  for (const std::uint64_t lane : lanes) hash = mix(hash ^ lane);
  return rest == 0 ? hash : mix(hash ^ rest);
}

std::uint64_t hash_of(std::span<const float> values) {
  Hasher hasher;
  hasher.add(values);
  return hasher.value();
}

std::string hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace kolo::train
