// A computation of a known length and a known result, to be done while something else is in flight.
//
// It uses a core's vector units and 4 KiB, so that it takes no bandwidth from what it is compared
// with: the most friendly neighbour that communication can have. Every element is stepped by the
// same linear congruence (Numerical Recipes' constants) modulo 2^32, whose n-th iterate has a
// closed form: whether all was done is then checked by another way than doing it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace kolo::bench {

class Computation {
 public:
  Computation();

  // Runs this many rounds, and calls `between` (if there is one) about every kSliceUs.
  // std::runtime_error where the result is not the known one.
  void run(std::uint64_t rounds, const std::function<void()>& between = {});

  // How many rounds take `us` microseconds on this core as it is now.
  std::uint64_t rounds_in(double us);

  static constexpr double kSliceUs = 10;

  // The value after `rounds` rounds from `value`, in O(log rounds).
  static std::uint32_t iterate(std::uint32_t value, std::uint64_t rounds);

 private:
  static constexpr std::size_t kElements = 1024;

  void step();
  double measure_round_us();

  alignas(64) std::array<std::uint32_t, kElements> values_{};
  std::uint64_t rounds_in_slice_ = 1;
};

}  // namespace kolo::bench
