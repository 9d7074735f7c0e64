// Parsers for the texts of decorators: lists, quantities with units, key=value.
//
// Each parser takes a whole word without blanks. It returns nothing for any other text; the caller
// reports the error. Numbers may have decimals: 2.5Gbit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace kolo::inline v0::decorators {

// "a,b" gives a and b; "" gives one empty word.
std::vector<std::string_view> split(std::string_view text, char separator);

// The parts before and after the first separator; nothing if there is none.
std::optional<std::pair<std::string_view, std::string_view>> split_once(std::string_view text,
                                                                        char separator);

// Digits only.
std::optional<std::uint64_t> parse_whole(std::string_view text);

// Bytes per second of "1Gbit", "100Mbit", "64Kbit" (decimal) or "125MB", "1GB" (per second,
// decimal).
std::optional<std::uint64_t> parse_rate(std::string_view text);

// "1ms", "50us", "200ns", "1.5s".
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

// Bytes of "64KiB", "1MiB", "1500B", "64KB" (decimal).
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace kolo::inline v0::decorators
