#include "train/data/random.h"

#include <cstddef>
#include <stdexcept>

namespace kolo::train {
namespace {

constexpr std::uint32_t low_word(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {high_word(product1) ^ counter[1] ^ key[0], low_word(product1),
               high_word(product0) ^ counter[3] ^ key[1], low_word(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

Random::Random(std::uint64_t seed, Purpose purpose, std::uint64_t index)
    : counter_{0, static_cast<std::uint32_t>(purpose), low_word(index), high_word(index)},
      key_{low_word(seed), high_word(seed)} {}

std::uint32_t Random::bits() {
  if (used_ == 4) {
    block_ = philox4x32_10(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

// Lemire, "Fast random integer generation in an interval", 2019: one multiplication, and a division
// only if the result could be biased.
std::uint32_t Random::below(std::uint32_t bound) {
  if (bound == 0) throw std::invalid_argument("Random::below: the bound must be positive");
  std::uint64_t product = std::uint64_t{bits()} * bound;
  if (low_word(product) < bound) {
    const std::uint32_t threshold = (0u - bound) % bound;
    while (low_word(product) < threshold) product = std::uint64_t{bits()} * bound;
  }
  return high_word(product);
}

float Random::uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24f; }

float Random::uniform(float low, float high) { return low + (high - low) * uniform(); }

bool Random::chance(float probability) { return uniform() < probability; }

}  // namespace kolo::train
