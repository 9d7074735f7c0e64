#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <optional>
#include <stdexcept>

#include "transports/decorators/parsing.h"
#include "transports/decorators/shape.h"

namespace kolo::inline v0 {

namespace {

using decorators::parse_duration;
using decorators::parse_whole;
using decorators::split;
using decorators::split_once;

constexpr std::uint64_t kLeastRate = 125;             // 1 Kbit
constexpr std::uint64_t kMostRate = 125'000'000'000;  // 1000 Gbit
constexpr std::uint64_t kMostBurst = std::uint64_t{1} << 30;
constexpr std::chrono::nanoseconds kLongest = std::chrono::seconds(10);
constexpr double kMostInFlight = 1e9;
constexpr int kMostRank = 1'000'000;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Shape parse() {
    Shape shape;
    shape.text = std::string(text_);
    if (std::ranges::any_of(text_, [](unsigned char c) { return c <= ' ' || c > '~'; }))
      refuse("expected no blanks, as in 1Gbit,1ms");
    bool is_first = true;
    for (const std::string_view rule : split(text_, '+')) {
      const auto parts = split_once(rule, ':');
      if (!parts || parts->first == "hosts") {
        if (!is_first)
          refuse(fmt::format("'{}' names no pair: only the first rule may be for all pairs", rule));
        shape.is_between_hosts_only = parts.has_value();
        shape.all = parse_path(parts ? parts->second : rule, &shape);
      } else {
        add_pair(parts->first, parse_path(parts->second, nullptr), shape);
      }
      is_first = false;
    }
    name_seed(shape);
    return shape;
  }

 private:
  // `shape`: receives a seed; null if no seed is allowed.
  ShapedPath parse_path(std::string_view rule, Shape* shape) {
    ShapedPath path;
    if (rule == "off") return path;
    if (rule.starts_with("off,seed=")) {
      take("seed", rule.substr(9), rule, path, shape);
      return path;
    }
    path.is_shaped = true;
    bool has_rate = false;
    bool has_delay = false;
    for (const std::string_view word : split(rule, ',')) {
      if (const auto pair = split_once(word, '=')) {
        take(pair->first, pair->second, word, path, shape);
      } else if (const auto rate = decorators::parse_rate(word); rate && !has_rate) {
        if (*rate < kLeastRate || *rate > kMostRate)
          refuse(fmt::format("'{}' is not from 1Kbit to 1000Gbit", word));
        path.bytes_per_second = *rate;
        has_rate = true;
      } else if (const auto delay = parse_duration(word); delay && !has_delay) {
        path.delay = short_enough(*delay, word);
        has_delay = true;
      } else {
        refuse(
            fmt::format("'{}' is neither a rate (1Gbit, 100Mbit, 125MB) nor a delay (1ms, "
                        "50us) nor jitter=, burst= or seed=, each once; nor off",
                        word));
      }
    }
    check_in_flight(path);
    return path;
  }

  void take(std::string_view key, std::string_view value, std::string_view word, ShapedPath& path,
            Shape* shape) {
    if (key == "jitter") {
      const auto jitter = parse_duration(value);
      if (!jitter) refuse(fmt::format("'{}': expected a time, as in jitter=100us", word));
      path.jitter = short_enough(*jitter, word);
    } else if (key == "burst") {
      const auto burst = decorators::parse_bytes(value);
      if (!burst || *burst > kMostBurst)
        refuse(fmt::format("'{}': expected at most 1 GiB, as in burst=256KiB", word));
      path.burst_bytes = *burst;
    } else if (key == "seed" && shape != nullptr) {
      const auto seed = parse_whole(value);
      if (!seed) refuse(fmt::format("'{}': expected a number, as in seed=7", word));
      shape->seed = *seed;
      has_seed_ = true;
    } else {
      refuse(fmt::format("'{}': expected jitter=, burst= or, in the first rule, seed=", word));
    }
  }

  std::chrono::nanoseconds short_enough(std::chrono::nanoseconds time,
                                        std::string_view word) const {
    if (time > kLongest) refuse(fmt::format("'{}' is longer than 10s", word));
    return time;
  }

  // Limits the bytes in flight, as this machine must keep them in memory.
  void check_in_flight(const ShapedPath& path) const {
    const std::chrono::duration<double> time = path.delay + path.jitter;
    const double bytes = static_cast<double>(path.bytes_per_second) * time.count();
    if (bytes > kMostInFlight) {
      refuse(
          fmt::format("{:.1f} GB would be in flight at once, and this machine would have to "
                      "keep them in memory: expected at most 1 GB per pair",
                      bytes * 1e-9));
    }
  }

  void add_pair(std::string_view who, ShapedPath path, Shape& shape) const {
    const auto both = split_once(who, '-');
    const auto at = who.find("to");
    const auto one = at == std::string_view::npos
                         ? std::nullopt
                         : std::optional(std::pair{who.substr(0, at), who.substr(at + 2)});
    const auto pair = both ? both : one;
    const auto from = pair ? parse_whole(pair->first) : std::nullopt;
    const auto to = pair ? parse_whole(pair->second) : std::nullopt;
    if (!from || !to || *from == *to || *from > kMostRank || *to > kMostRank) {
      refuse(
          fmt::format("'{}' is not a pair of ranks: expected 0-1 (both ways), 0to1 (one way) or "
                      "hosts (in the first rule)",
                      who));
    }
    path.is_own_wire = true;
    const int a = static_cast<int>(*from);
    const int b = static_cast<int>(*to);
    shape.overrides.push_back({a, b, path});
    if (both) shape.overrides.push_back({b, a, path});
  }

  // Adds the seed to the text if there is jitter, so that the run can be repeated: to the first
  // rule, or in a new first rule if that one is for a pair.
  void name_seed(Shape& shape) const {
    const bool has_jitter =
        shape.all.jitter.count() > 0 || std::ranges::any_of(shape.overrides, [](const auto& o) {
          return o.path.jitter.count() > 0;
        });
    if (!has_jitter || has_seed_) return;
    const std::string_view first = text_.substr(0, text_.find('+'));
    const bool is_for_all =
        first.find(':') == std::string_view::npos || first.starts_with("hosts:");
    const std::string seed = fmt::format("{}seed={}", is_for_all ? "," : "off,", shape.seed);
    shape.text = is_for_all ? fmt::format("{}{}{}", first, seed, text_.substr(first.size()))
                            : fmt::format("{}+{}", seed, text_);
  }

  std::string_view text_;
  bool has_seed_ = false;
};

}  // namespace

ShapedPath Shape::path(int from, int to, const std::vector<int>& hosts) const {
  const auto host = [&hosts](int rank) {
    return hosts.empty() ? 0 : hosts.at(static_cast<std::size_t>(rank));
  };
  ShapedPath result = is_between_hosts_only && host(from) == host(to) ? ShapedPath{} : all;
  for (const Override& pair : overrides) {
    if (pair.from == from && pair.to == to) result = pair.path;
  }
  return result;
}

Shape parse_shape(std::string_view text) { return Parser(text).parse(); }

void check_shape(const Shape& shape, int size) {
  for (const Shape::Override& pair : shape.overrides) {
    const int highest = std::max(pair.from, pair.to);
    if (highest >= size) refuse(fmt::format("there is no rank {}: this job has {}", highest, size));
  }
}

}  // namespace kolo::inline v0
