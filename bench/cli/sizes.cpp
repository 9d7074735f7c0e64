#include "bench/cli/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

namespace kolo::bench {
namespace {

constexpr int kNoUnit = -1;
constexpr std::size_t kThousand = 1000;

std::string in_small_letters(std::string_view text) {
  std::string small;
  for (const char c : text)
    small.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  return small;
}

// The power of 1024 that a unit stands for: "", "K", "KiB", ...
int power_of(std::string_view unit) {
  const std::string small = in_small_letters(unit);
  if (small.empty() || small == "b") return 0;
  if (small == "k" || small == "ki" || small == "kib") return 1;
  if (small == "m" || small == "mi" || small == "mib") return 2;
  if (small == "g" || small == "gi" || small == "gib") return 3;
  return kNoUnit;
}

// "1MB" is ambiguous: 1000000 or 1048576 bytes.
[[noreturn]] void refuse(std::string_view text, std::string_view number, std::string_view unit) {
  const std::string small = in_small_letters(unit);
  if (!number.empty() && (small == "kb" || small == "mb" || small == "gb")) {
    const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(small[0])));
    throw std::invalid_argument(
        fmt::format("'{}' may mean powers of 1000 or of 1024: write {}{} (or {}{}iB) for powers of "
                    "1024, or the number of bytes",
                    text, number, letter, number, letter));
  }
  throw std::invalid_argument(
      fmt::format("'{}' is not a size; expected a size such as 8, 32K, 256M or 1G", text));
}

// A size as typed, in its parts.
struct Words {
  std::optional<std::size_t> value;  // none: there is no number, or it is too large
  std::string_view number;
  std::string_view unit;
};

Words split(std::string_view text) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  Words words{std::nullopt, text.substr(0, text.size() - unit.size()), unit};
  if (error == std::errc{}) words.value = value;
  return words;
}

std::size_t product(std::string_view text, std::size_t value, std::size_t unit) {
  if (value > std::numeric_limits<std::size_t>::max() / unit) {
    throw std::invalid_argument(
        fmt::format("'{}' is too large; expected less than 2^64 bytes", text));
  }
  return value * unit;
}

}  // namespace

std::size_t parse_bytes(std::string_view text) {
  const Words words = split(text);
  const int power = power_of(words.unit);
  if (!words.value || power == kNoUnit) refuse(text, words.number, words.unit);
  return product(text, *words.value, std::size_t{1} << (10 * power));
}

std::size_t parse_decimal_bytes(std::string_view text) {
  const Words words = split(text);
  const bool is_binary = words.unit.find_first_of("iI") != std::string_view::npos;
  const bool has_b = words.unit.size() == 2 && in_small_letters(words.unit)[1] == 'b';
  const int power = power_of(has_b ? words.unit.substr(0, 1) : words.unit);
  if (!words.value || power == kNoUnit || is_binary || (has_b && power == 0)) {
    throw std::invalid_argument(
        fmt::format("'{}' is not a size in powers of 1000; expected a size such as 64K, 1M (10^6 "
                    "bytes) or 1G",
                    text));
  }
  std::size_t unit = 1;
  for (int i = 0; i < power; ++i) unit *= kThousand;
  return product(text, *words.value, unit);
}

std::string format_decimal_bytes(std::size_t bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= kThousand && bytes % kThousand == 0) {
    bytes /= kThousand;
    ++unit;
  }
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

std::string format_bytes(std::size_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  constexpr double kAlmost = 1023.95;  // would be written 1024.0
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (unit + 1 < std::size(kUnits) &&
         (value >= 1024 || (value > kAlmost && value != std::floor(value)))) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value == std::floor(value) ? 0 : 1, kUnits[unit]);
}

std::string format_count(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::size_t whole(std::size_t bytes, std::size_t granule) {
  return bytes == 0 ? 0 : std::max(bytes / granule, std::size_t{1}) * granule;
}

std::vector<std::size_t> steps(std::size_t min, std::size_t max, std::size_t factor,
                               std::size_t granule) {
  if (min > max) {
    throw std::invalid_argument(fmt::format("--min-bytes {} is more than --max-bytes {}",
                                            format_bytes(min), format_bytes(max)));
  }
  if (factor < 2)
    throw std::invalid_argument(fmt::format("--factor {} would never end; 2 is the least", factor));
  std::vector<std::size_t> sizes;
  std::size_t bytes = min;
  while (bytes < max) {
    sizes.push_back(bytes);
    if (bytes > max / factor) break;
    bytes = bytes == 0 ? granule : bytes * factor;
  }
  sizes.push_back(max);
  return sizes;
}

std::vector<std::size_t> sweep(std::size_t min, std::size_t max, std::size_t factor,
                               std::size_t granule) {
  std::vector<std::size_t> sizes = steps(min, max, factor, granule);
  for (std::size_t& bytes : sizes) bytes = whole(bytes, granule);
  const auto repeated = std::ranges::unique(sizes);
  sizes.erase(repeated.begin(), repeated.end());
  return sizes;
}

}  // namespace kolo::bench
