// Operands of the kernel benchmark: 1 MiB of small numbers, repeated. So a result repeats too, and
// the host computes and compares 1 MiB, not gigabytes of narrow floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/element.h"

namespace kolo::bench {

inline constexpr std::size_t kOperandPeriod = std::size_t{1} << 20;  // bytes

// One period of numbers from 0 to 7: every type can hold the sum of two.
std::vector<std::byte> operand_period(ElementType type, std::uint32_t seed);

// Elements of `found`, whole periods and a rest, that differ from the repeated `expected`.
std::uint64_t count_wrong_elements(ElementType type, std::span<const std::byte> found,
                                   std::span<const std::byte> expected);

}  // namespace kolo::bench
