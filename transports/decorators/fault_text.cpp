#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "transports/decorators/fault.h"
#include "transports/decorators/parsing.h"

namespace kolo::inline v0 {

namespace {

using decorators::parse_whole;
using decorators::split;
using decorators::split_once;

struct Kind {
  std::string_view name;
  FaultKind kind;
  std::string_view keys;  // that it takes
};

constexpr Kind kKinds[] = {{"die", FaultKind::kDie, "rank peer segment"},
                           {"lose", FaultKind::kLose, "rank peer segment"},
                           {"stall", FaultKind::kStall, "rank peer segment for"},
                           {"corrupt", FaultKind::kCorrupt, "rank peer segment"},
                           {"storm", FaultKind::kStorm, "rank peer times seed on"}};

constexpr std::uint64_t kMostRank = 1'000'000;
constexpr std::uint64_t kMostTimes = 1'000'000;
constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(1);

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  FaultPlan parse() const {
    FaultPlan plan;
    plan.text = std::string(text_);
    for (const std::string_view word : split(text_, '+')) plan.faults.push_back(parse_fault(word));
    return plan;
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) { throw std::invalid_argument(what); }

  Fault parse_fault(std::string_view word) const {
    const auto parts = split_once(word, '@');
    const std::string_view name = parts ? parts->first : word;
    const auto* const kind =
        std::ranges::find_if(kKinds, [name](const Kind& one) { return one.name == name; });
    if (kind == std::end(kKinds)) {
      refuse(
          fmt::format("'{}' is none of die, lose, stall, corrupt, storm, as in "
                      "die@rank=1,segment=100",
                      name));
    }
    Fault fault;
    fault.kind = kind->kind;
    if (fault.kind == FaultKind::kStorm) fault.times = 3;
    if (parts) {
      for (const std::string_view pair : split(parts->second, ',')) take(pair, *kind, fault);
    }
    if (fault.kind == FaultKind::kStall && fault.time.count() == 0)
      refuse(fmt::format("'{}' does not say for how long, as in stall@rank=2,for=1s", word));
    if (fault.kind == FaultKind::kDie && fault.rank < 0)
      refuse(fmt::format("'{}' names no rank, as in die@rank=1", word));
    return fault;
  }

  void take(std::string_view pair, const Kind& kind, Fault& fault) const {
    const auto parts = split_once(pair, '=');
    const std::string_view key = parts ? parts->first : pair;
    const auto keys = split(kind.keys, ' ');
    if (!parts || std::ranges::find(keys, key) == keys.end())
      refuse(fmt::format("'{}' of {}: expected KEY=VALUE with a key of {}", pair, kind.name,
                         kind.keys));
    const std::string_view value = parts->second;
    if (key == "for") {
      const auto time = decorators::parse_duration(value);
      if (!time || *time > kLongest)
        refuse(fmt::format("'{}': expected a time, as in for=1s", pair));
      fault.time = *time;
    } else if (key == "on") {
      if (value != "in" && value != "out")
        refuse(fmt::format("'{}': expected on=in or on=out", pair));
      fault.is_in = value == "in";
      fault.is_out = value == "out";
    } else {
      take_number(pair, key, value, fault);
    }
  }

  void take_number(std::string_view pair, std::string_view key, std::string_view value,
                   Fault& fault) const {
    const auto number = parse_whole(value);
    const bool is_rank = key == "rank" || key == "peer";
    const std::uint64_t least = key == "segment" || key == "times" ? 1 : 0;
    const std::uint64_t most = is_rank          ? kMostRank
                               : key == "times" ? kMostTimes
                                                : std::numeric_limits<std::uint64_t>::max();
    if (!number || *number < least || *number > most)
      refuse(fmt::format("'{}': expected a number from {} to {}", pair, least, most));
    if (key == "rank") fault.rank = static_cast<int>(*number);
    if (key == "peer") fault.peer = static_cast<int>(*number);
    if (key == "segment") fault.segment = *number;
    if (key == "times") fault.times = *number;
    if (key == "seed") fault.seed = *number;
  }

  std::string_view text_;
};

}  // namespace

FaultPlan parse_faults(std::string_view text) { return Parser(text).parse(); }

}  // namespace kolo::inline v0
