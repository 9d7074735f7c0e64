#include "train/flags/flag_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "train/data/dataset.h"
#include "transports/base/suggestion.h"

namespace kolo::train {
namespace {

template <typename Number>
std::optional<Number> parsed(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// Suggests the specification of the most similar data set; empty if none is similar. For an
// existing folder without a kind, adds each kind that has a folder.
std::string meant_dataset(const std::string& kind, const std::string& place) {
  std::vector<std::string> kinds, kinds_with_place;
  for (const DatasetScheme& scheme : dataset_schemes()) {
    kinds.emplace_back(scheme.name);
    if (scheme.usage.ends_with(":DIR")) kinds_with_place.emplace_back(scheme.name);
  }
  std::string word = kind;
  std::ranges::transform(word, word.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const std::string meant = suggested_word(word, kinds);
  std::error_code ignored;
  if (meant.empty() && place.empty() && std::filesystem::is_directory(kind, ignored))
    return fmt::format("{}:{}", fmt::join(kinds_with_place, fmt::format(":{} or ", kind)), kind);
  if (!place.empty() && std::ranges::find(kinds_with_place, meant) != kinds_with_place.end())
    return fmt::format("{}:{}", meant, place);
  for (const DatasetScheme& scheme : dataset_schemes()) {
    if (scheme.name == meant) return std::string(scheme.usage);
  }
  return "";
}

}  // namespace

ValueRule whole_number(std::int64_t least, std::int64_t most) {
  return [least, most](const std::string& text) -> std::string {
    const auto value = parsed<std::int64_t>(text);
    if (value && *value >= least && *value <= most) return "";
    const bool is_bounded = most < std::numeric_limits<std::int64_t>::max();
    const bool is_too_long = !value && text.find_first_not_of("0123456789") == std::string::npos;
    const std::string range = is_bounded || (is_too_long && !text.empty())
                                  ? fmt::format("from {} to {}", least, most)
                                  : fmt::format("of at least {}", least);
    return fmt::format("expected a whole number {}{}, got '{}'", range,
                       text.find(',') == std::string::npos ? "" : ", one at a time", text);
  };
}

ValueRule real_number(double least, Least is, double limit) {
  return [least, is, limit](const std::string& text) -> std::string {
    const auto value = parsed<double>(text);
    const bool is_enough = value && std::isfinite(*value) &&
                           (is == Least::included ? *value >= least : *value > least);
    if (is_enough && *value < limit) return "";
    return fmt::format("expected a {}number {} {}{}, got '{}'",
                       value && !std::isfinite(*value) ? "finite " : "",
                       is == Least::included ? "of at least" : "above", least,
                       std::isfinite(limit) ? fmt::format(" and below {}", limit) : "", text);
  };
}

ValueRule nonempty_text(std::string expected) {
  return [expected = std::move(expected)](const std::string& text) -> std::string {
    return text.empty() ? fmt::format("expected {}", expected) : "";
  };
}

ValueRule one_of(std::string what, std::vector<std::string> names) {
  return
      [what = std::move(what), names = std::move(names)](const std::string& text) -> std::string {
        if (std::ranges::find(names, text) != names.end()) return "";
        const bool is_list = text.find(',') != std::string::npos;
        return fmt::format("unknown {} '{}'; {}expected one of {}{}", what, text,
                           is_list ? "one at a time; " : "", fmt::join(names, ", "),
                           did_you_mean(suggested_word(text, names)));
      };
}

ValueRule known_dataset() {
  return [](const std::string& text) -> std::string {
    const std::string kind = text.substr(0, text.find(':'));
    std::vector<std::string_view> usages;
    for (const DatasetScheme& scheme : dataset_schemes()) {
      if (scheme.name == kind) return "";
      usages.push_back(scheme.usage);
    }
    const std::string place = kind == text ? "" : text.substr(kind.size() + 1);
    return fmt::format("unknown data set '{}'; expected one of {}{}", text, fmt::join(usages, ", "),
                       did_you_mean(meant_dataset(kind, place)));
  };
}

}  // namespace kolo::train
