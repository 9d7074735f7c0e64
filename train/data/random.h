// Counter-based random numbers: a pure function of (seed, purpose, index, draw).
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011): a keyed bijection of a counter. The key is the seed; the counter is (draw, purpose,
// index). So each sample, each permutation of an epoch and each crop has its own sequence. It is
// independent of other draws, the same on every platform, and starts anywhere at no cost. Cost:
// about 10 ns per four numbers, 48 bytes.
#pragma once

#include <array>
#include <cstdint>

namespace kolo::train {

// Purpose of a sequence. Sequences of different purposes are independent, for any seed and index.
enum class Purpose : std::uint32_t {
  digits_train = 1,
  digits_test = 2,
  permutation = 3,
  augmentation = 4,
  test = 5,
  synthetic = 6,
};

// One application of the bijection: counter and key to four words.
std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key);

// A sequence of draws for (seed, purpose, index). A value: copy it to fork it. Up to 2^34 draws of
// 32 bits.
class Random {
 public:
  Random(std::uint64_t seed, Purpose purpose, std::uint64_t index);

  // 32 uniform bits.
  std::uint32_t bits();
  // Uniform integer in [0, bound), without bias. Throws std::invalid_argument when bound is 0.
  std::uint32_t below(std::uint32_t bound);
  // Uniform in [0, 1): 24 bits, exact in float.
  float uniform();
  // Uniform in [low, high).
  float uniform(float low, float high);
  // True with this probability.
  bool chance(float probability);

 private:
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace kolo::train
