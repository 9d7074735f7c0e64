#include "bench/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <stdexcept>

namespace kolo::bench {
namespace {

// The power of 1024 behind a number: "", "K", "KB", "KiB", ...; -1 for anything else.
int power_of(std::string_view unit) {
  std::string small;
  for (const char c : unit)
    small.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  if (small.size() > 1 && small.back() == 'b') small.pop_back();
  if (small.size() > 1 && small.back() == 'i') small.pop_back();
  if (small.empty() || small == "b") return 0;
  if (small == "k") return 1;
  if (small == "m") return 2;
  if (small == "g") return 3;
  return -1;
}

}  // namespace

std::size_t parse_bytes(std::string_view text) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const int power = power_of({rest, static_cast<std::size_t>(end - rest)});
  if (error != std::errc{} || power < 0) {
    throw std::invalid_argument(fmt::format("'{}' is no size; write 8, 32K, 256M or 1G", text));
  }
  const std::size_t unit = std::size_t{1} << (10 * power);
  if (value > std::numeric_limits<std::size_t>::max() / unit) {
    throw std::invalid_argument(fmt::format("'{}' is more than any memory", text));
  }
  return value * unit;
}

std::string format_bytes(std::size_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::vector<std::size_t> sweep(std::size_t min, std::size_t max, std::size_t factor,
                               std::size_t granule) {
  if (min > max) {
    throw std::invalid_argument(fmt::format("--min-bytes {} is more than --max-bytes {}",
                                            format_bytes(min), format_bytes(max)));
  }
  if (factor < 2)
    throw std::invalid_argument(fmt::format("--factor {} would never end; 2 is the least", factor));
  std::vector<std::size_t> sizes;
  const auto add = [&](std::size_t bytes) {
    std::size_t whole = bytes / granule * granule;
    if (whole == 0 && bytes > 0 && granule <= max) whole = granule;
    if (sizes.empty() || sizes.back() != whole) sizes.push_back(whole);
  };
  std::size_t bytes = min;
  while (bytes < max) {
    add(bytes);
    if (bytes > max / factor) break;
    bytes = bytes == 0 ? granule : bytes * factor;
  }
  add(max);
  return sizes;
}

}  // namespace kolo::bench
