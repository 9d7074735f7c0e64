// Reading of JSON that another process wrote, field by field. A field that is missing, of another
// type or out of range is std::invalid_argument.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace kolo::bench {

// Parses the text and returns the result of `take`. `what` is the expected thing, for the message.
template <typename Value, typename Take>
Value read_json(const std::string& text, const char* what, const Take& take) {
  try {
    return take(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(std::string("no ") + what + ": " + error.what());
  }
}

// A whole number from 0 to `most`.
template <typename Number>
Number whole(const nlohmann::json& read, const char* name,
             Number most = std::numeric_limits<Number>::max()) {
  const nlohmann::json& field = read.at(name);
  if (!field.is_number_unsigned() ||
      field.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
    throw std::invalid_argument(std::string("no whole number in its range: ") + name);
  }
  return field.get<Number>();
}

// An enumerator by its number; `last` is the highest.
template <typename Enum>
Enum enumerator(const nlohmann::json& read, const char* name, Enum last) {
  return static_cast<Enum>(whole<int>(read, name, static_cast<int>(last)));
}

// A duration in any unit, not negative.
inline double duration(const nlohmann::json& field) {
  const auto time = field.get<double>();
  if (!(time >= 0)) throw std::invalid_argument("a duration is negative");
  return time;
}

inline std::vector<double> durations(const nlohmann::json& field) {
  std::vector<double> times;
  for (const nlohmann::json& time : field.get_ref<const nlohmann::json::array_t&>())
    times.push_back(duration(time));
  return times;
}

}  // namespace kolo::bench
