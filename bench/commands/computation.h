// A computation with known duration and result, to run while an operation is in flight.
//
// It uses a core's vector units and 4 KiB of data. The data stays in the L1 cache, so the
// computation takes no memory bandwidth from the operation. Every element is one linear
// congruential generator modulo 2^32 (the constants of Numerical Recipes). The value after n rounds
// has a closed form, so the result is checked without repeating the work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace kolo::bench {

class Computation {
 public:
  Computation();

  // Runs `rounds` rounds, and calls `between` (if set) about every kSliceUs. std::runtime_error if
  // the result is wrong.
  void run(std::uint64_t rounds, const std::function<void()>& between = {});

  // Number of rounds that take `us` microseconds on this core, measured now.
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
