#include "transports/decorators/parsing.h"

#include <charconv>
#include <cmath>
#include <span>
#include <string>

namespace kolo::inline v0::decorators {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// Near the limit (2^53) up to which a double holds every whole number.
constexpr double kMost = 9e15;

// Parses a number with one of the units. Returns it in the unit of factor 1, rounded.
std::optional<std::uint64_t> parse_quantity(std::string_view text, std::span<const Unit> units) {
  const auto end_of_number = text.find_first_not_of("0123456789.");
  if (end_of_number == std::string_view::npos || end_of_number == 0) return std::nullopt;
  const std::string_view number = text.substr(0, end_of_number);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  for (const Unit& unit : units) {
    if (text.substr(end_of_number) != unit.name) continue;
    const double result = std::round(value * unit.factor);
    if (!(result <= kMost)) return std::nullopt;
    return static_cast<std::uint64_t>(result);
  }
  return std::nullopt;
}

constexpr Unit kRates[] = {{"Kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8},
                           {"KB", 1e3},       {"MB", 1e6},       {"GB", 1e9}};
constexpr Unit kDurations[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit kSizes[] = {{"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"KiB", 1024}, {"MiB", 1024 * 1024}};

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (true) {
    const auto end = text.find(separator);
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::pair<std::string_view, std::string_view>> split_once(std::string_view text,
                                                                        char separator) {
  const auto at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  return std::pair{text.substr(0, at), text.substr(at + 1)};
}

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parse_rate(std::string_view text) {
  return parse_quantity(text, kRates);
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto count = parse_quantity(text, kDurations);
  if (!count) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(*count));
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  return parse_quantity(text, kSizes);
}

}  // namespace kolo::inline v0::decorators
