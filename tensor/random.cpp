#include "tensor/random.h"

namespace kolo::tensor {

namespace {

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed, std::string_view name) : state_(mix(seed)) {
  for (const char letter : name) {
    state_ = mix(state_ ^ static_cast<unsigned char>(letter));
  }
}

std::uint64_t Random::next() { return mix(state_ += 0x9e3779b97f4a7c15U); }

float Random::uniform() {
  const auto top = static_cast<std::int32_t>(next() >> 40);  // 24 bits: exact in a float
  return static_cast<float>(top - (1 << 23)) / static_cast<float>(1 << 23);
}

float Random::normal() {
  std::int32_t sum = 0;
  for (int word = 0; word < 3; ++word) {
    for (std::uint64_t bits = next(), i = 0; i < 4; ++i, bits >>= 16) {
      sum += static_cast<std::int32_t>(bits & 0xffff);
    }
  }
  // Each of the twelve numbers has the mean (2^16 - 1) / 2. Twice the sum minus twice the mean is
  // an integer, so nothing is rounded before the division.
  return static_cast<float>(2 * sum - 12 * 0xffff) / static_cast<float>(1 << 17);
}

}  // namespace kolo::tensor
