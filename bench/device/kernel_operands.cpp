#include "bench/device/kernel_operands.h"

#include <algorithm>
#include <cstring>

namespace kolo::bench {
namespace {

template <typename T>
void write_one(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

void write_element(ElementType type, std::byte* to, int value) {
  const auto number = static_cast<float>(value);
  switch (type) {
    case ElementType::kFloat32:
      return write_one(to, number);
    case ElementType::kFloat64:
      return write_one(to, static_cast<double>(value));
    case ElementType::kBFloat16:
      return write_one(to, to_bfloat16(number));
    case ElementType::kFloat16:
      return write_one(to, to_float16(number));
    case ElementType::kFloat8E4M3:
      return write_one(to, to_float8_e4m3(number));
    case ElementType::kFloat8E5M2:
      return write_one(to, to_float8_e5m2(number));
    default:
      break;
  }
  // Integers of any length: devices and hosts are little-endian.
  const std::int64_t wide = value;
  std::memcpy(to, &wide, element_bytes(type));
}

std::uint64_t count_wrong_here(std::span<const std::byte> found,
                               std::span<const std::byte> expected, std::size_t length) {
  if (std::memcmp(found.data(), expected.data(), found.size()) == 0) return 0;
  std::uint64_t wrong = 0;
  for (std::size_t at = 0; at < found.size(); at += length) {
    if (std::memcmp(found.data() + at, expected.data() + at, length) != 0) ++wrong;
  }
  return wrong;
}

}  // namespace

std::vector<std::byte> operand_period(ElementType type, std::uint32_t seed) {
  const std::size_t length = element_bytes(type);
  std::vector<std::byte> period(kOperandPeriod);
  std::uint32_t state = seed;
  for (std::size_t at = 0; at < period.size(); at += length) {
    state = state * 1664525u + 1013904223u;
    write_element(type, period.data() + at, static_cast<int>(state >> 29));
  }
  return period;
}

std::uint64_t count_wrong_elements(ElementType type, std::span<const std::byte> found,
                                   std::span<const std::byte> expected) {
  std::uint64_t wrong = 0;
  while (!found.empty()) {
    const auto piece = found.first(std::min(found.size(), expected.size()));
    wrong += count_wrong_here(piece, expected, element_bytes(type));
    found = found.subspan(piece.size());
  }
  return wrong;
}

}  // namespace kolo::bench
