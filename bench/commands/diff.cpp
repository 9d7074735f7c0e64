#include "bench/commands/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/cli/sizes.h"
#include "bench/output/report.h"

namespace kolo::bench {
namespace {

// Identity of a row: rows of two files are the same measurement if all of it is equal. Rows of
// older versions lack some fields; these get the value that was in effect then.
struct Point {
  std::string library;  // the name in --against: openmpi:ring
  std::string transport, collective, type, op;
  int ranks = 0;
  std::size_t bytes = 0;
  std::string form, memory, reproducibility, progress, network;
  bool is_in_place = true;
  std::size_t segment_bytes = 0, window = 0;
  int servers = 0;
  std::string algorithm;
  auto operator<=>(const Point&) const = default;
};

constexpr int kRegression = 1;
constexpr int kNothingCompared = 4;
constexpr std::size_t kFewestPasses = 3;  // fewer passes do not show the noise

struct Saved {
  double median_us = 0, p10_us = 0, p90_us = 0;
  std::vector<double> pass_us;
  std::string regime;
  std::uint64_t wrong = 0;
  std::string machine;
};

using Rows = std::map<Point, Saved>;

enum class Verdict { kNoise, kSlower, kFaster, kWrong, kOtherRegime, kDisturbed, kMoved };

bool is_usually_in_place(const Point& point) {
  return point.collective != "alltoall" && !point.collective.starts_with("p2p_");
}

double positive(const nlohmann::json& row, const char* name) {
  if (!row.at(name).is_number())
    throw std::invalid_argument(fmt::format("'{}' is not a number", name));
  const double value = row.at(name);
  if (!(value > 0)) throw std::invalid_argument(fmt::format("'{}' is not above 0", name));
  return value;
}

// A whole number, 0 or more.
template <typename Number>
Number whole(const nlohmann::json& row, const char* name) {
  const nlohmann::json& value = row.at(name);
  if (!value.is_number_unsigned() || !std::in_range<Number>(value.get<std::uint64_t>()))
    throw std::invalid_argument(fmt::format("'{}' is not a count", name));
  return value;
}

template <typename Number>
Number whole_or(const nlohmann::json& row, const char* name, Number missing) {
  return row.contains(name) ? whole<Number>(row, name) : missing;
}

std::pair<Point, Saved> read_row(const nlohmann::json& row) {
  Point point;
  point.library = row.value("peer", row.at("library"));
  point.transport = row.at("transport");
  point.collective = row.at("collective");
  point.type = row.value("type", "");
  point.op = row.value("op", "");
  point.ranks = whole<int>(row, "ranks");
  point.bytes = whole<std::size_t>(row, "bytes");
  point.form = row.value("form", "blocking");
  point.memory = row.value("memory", "");
  point.reproducibility = row.value("reproducibility", "fast");
  point.progress = row.value("progress", "");
  if (point.progress == "nobody") point.progress = "none";  // its name in older files
  point.network = row.value("network", "");
  point.is_in_place = row.value("in_place", is_usually_in_place(point));
  point.segment_bytes = whole_or(row, "segment_bytes", std::size_t{0});
  point.window = whole_or(row, "window", std::size_t{0});
  point.servers = whole_or(row, "servers", 0);
  point.algorithm = row.at("algorithm");
  Saved saved;
  saved.median_us = positive(row, "median_us");
  saved.p10_us = positive(row, "p10_us");
  saved.p90_us = positive(row, "p90_us");
  if (saved.p10_us > saved.median_us || saved.median_us > saved.p90_us)
    throw std::invalid_argument("'p10_us', 'median_us' and 'p90_us' do not rise");
  saved.pass_us = row.value("pass_us", std::vector<double>{});
  if (std::ranges::any_of(saved.pass_us, [](double pass) { return !(pass > 0); }))
    throw std::invalid_argument("one of 'pass_us' is not above 0");
  saved.regime = row.value("regime", "unknown");
  if (row.contains("wrong") && !row["wrong"].is_null())
    saved.wrong = whole<std::uint64_t>(row, "wrong");
  if (row.contains("run")) saved.machine = row["run"].value("machine", "");
  return {point, saved};
}

// The message without the JSON library's prefix, as in "[json.exception.out_of_range.403] key
// 'ranks' not found".
std::string words_of(const std::exception& error) {
  const std::string text = error.what();
  const auto bracket = text.starts_with("[json.exception") ? text.find("] ") : std::string::npos;
  return bracket == std::string::npos ? text : text.substr(bracket + 2);
}

Rows read_rows(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file || file.peek() == std::ifstream::traits_type::eof()) {
    throw std::invalid_argument(
        fmt::format("{}: {}", path,
                    !file && errno != 0 ? std::strerror(errno)
                                        : "nothing in it can be read: is it a file of rows?"));
  }
  Rows rows;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    try {
      const auto row = nlohmann::json::parse(line);
      if (!row.is_object() || !row.contains("library")) continue;  // a limit, perhaps
      const auto [point, saved] = read_row(row);
      rows.insert_or_assign(point, saved);
    } catch (const nlohmann::json::parse_error&) {
      throw std::invalid_argument(fmt::format(
          "{}:{}: is not JSON: expected lines as kolo-bench's --json writes them", path, number));
    } catch (const std::exception& error) {  // missing fields, or fields of a different type
      throw std::invalid_argument(
          fmt::format("{}:{}: no row of kolo-bench: {}", path, number, words_of(error)));
    }
  }
  if (rows.empty())
    throw std::invalid_argument(
        fmt::format("{}: holds no rows: expected JSON lines, as --json writes them", path));
  return rows;
}

// Whether `one` is faster than `other` beyond noise: each of its passes is faster than each of the
// other's. If a file has too few passes, `one`'s median must be below the other's 10th percentile,
// and `one`'s 90th percentile below the other's median.
bool is_less(const Saved& one, const Saved& other) {
  if (one.pass_us.size() >= kFewestPasses && other.pass_us.size() >= kFewestPasses)
    return std::ranges::max(one.pass_us) < std::ranges::min(other.pass_us);
  return one.median_us < other.p10_us && one.p90_us < other.median_us;
}

Verdict judge(const Saved& before, const Saved& now, double least_percent) {
  if (now.wrong > 0 && before.wrong == 0) return Verdict::kWrong;
  if (before.regime == "disturbed" || now.regime == "disturbed") return Verdict::kDisturbed;
  if (before.regime == "moved" || now.regime == "moved") return Verdict::kMoved;
  if (before.regime != now.regime) return Verdict::kOtherRegime;
  const double apart = 1 + least_percent / 100;
  if (is_less(before, now) && now.median_us >= apart * before.median_us) return Verdict::kSlower;
  if (is_less(now, before) && before.median_us >= apart * now.median_us) return Verdict::kFaster;
  return Verdict::kNoise;
}

std::string verdict_text(Verdict verdict, const Saved& before, const Saved& now, bool counts) {
  switch (verdict) {
    case Verdict::kSlower:
      return counts ? "SLOWER" : "slower (does not count: not kolo's)";
    case Verdict::kFaster:
      return "faster";
    case Verdict::kWrong:
      return "WRONG: " + format_count(now.wrong, "element");
    case Verdict::kOtherRegime:
      return fmt::format("different regime ({}, now {}), not comparable", before.regime,
                         now.regime);
    case Verdict::kMoved:
      return "the cores moved during one of them, not comparable";
    case Verdict::kDisturbed:
      return "disturbed by another program, not comparable";
    case Verdict::kNoise:
      break;
  }
  return "noise";
}

// Options beyond the collective and its data; empty for the defaults.
std::string setting_text(const Point& point) {
  std::vector<std::string> words;
  if (point.form != "blocking") words.push_back(point.form);
  if (!point.memory.empty()) words.push_back(point.memory);
  if (point.reproducibility != "fast") words.push_back(point.reproducibility);
  if (!point.progress.empty()) words.push_back("progress by " + point.progress);
  if (!point.network.empty()) words.push_back("network " + point.network);
  if (!point.is_in_place && is_usually_in_place(point)) words.emplace_back("out of place");
  if (point.servers > 0) words.push_back(fmt::format("servers {}", point.servers));
  if (point.window > 0) words.push_back(fmt::format("window {}", point.window));
  if (point.segment_bytes > 0)
    words.push_back(fmt::format("segments of {}", format_bytes(point.segment_bytes)));
  return words.empty() ? "" : fmt::format(" ({})", fmt::join(words, ", "));
}

// The row of the old file to compare with `point` of the new file; end() if there is none. It is
// the row with the same point. If there is none, it is the only old row that differs in the
// algorithm alone, among those whose point the new file does not have.
Rows::const_iterator find_before(const Rows& old_rows, const Rows& new_rows, const Point& point) {
  if (const auto same = old_rows.find(point); same != old_rows.end()) return same;
  auto found = old_rows.end();
  for (auto row = old_rows.begin(); row != old_rows.end(); ++row) {
    Point renamed = row->first;
    renamed.algorithm = point.algorithm;
    if (renamed != point || new_rows.contains(row->first)) continue;
    if (found != old_rows.end()) return old_rows.end();
    found = row;
  }
  return found;
}

class Comparison {
 public:
  explicit Comparison(double least_percent) : least_percent_(least_percent) {}

  void add(const Point& old_point, const Saved& before, const Point& point, const Saved& now) {
    const Verdict verdict = judge(before, now, least_percent_);
    const bool counts = point.library == "kolo";
    ++seen_[verdict];
    const bool is_compared = verdict != Verdict::kOtherRegime && verdict != Verdict::kDisturbed &&
                             verdict != Verdict::kMoved;
    if (counts) ++(is_compared ? own_compared_ : own_not_compared_);
    if (counts && (verdict == Verdict::kSlower || verdict == Verdict::kWrong)) ++regressions_;
    const std::string algorithm = old_point.algorithm == point.algorithm
                                      ? point.algorithm
                                      : old_point.algorithm + " -> " + point.algorithm;
    std::cout << fmt::format(
        " {:<12} {:>6} {:>14} {:>5} {:>8} {:>8} {:>9} {:>24} {:>9} {:>9} {:>7}  {}{}\n",
        point.library, point.transport, point.collective, point.ranks, format_bytes(point.bytes),
        point.type, point.op, algorithm, time_text(before.median_us), time_text(now.median_us),
        fmt::format("{:+.1f} %", 100 * (now.median_us / before.median_us - 1)),
        verdict_text(verdict, before, now, counts), setting_text(point));
    flush_or_throw(std::cout, kTable);
  }

  int end(std::size_t only_old, std::size_t only_new) {
    const auto compared = seen_[Verdict::kFaster] + seen_[Verdict::kSlower] +
                          seen_[Verdict::kWrong] + seen_[Verdict::kNoise];
    const auto not_compared =
        seen_[Verdict::kOtherRegime] + seen_[Verdict::kDisturbed] + seen_[Verdict::kMoved];
    const bool is_blind = own_compared_ == 0 && (own_not_compared_ > 0 || compared == 0);
    std::cout << fmt::format(
        "# {} faster, {} slower, {} wrong, {} noise, {} not comparable; only in the old file {}, "
        "only in the new one {}\n# {}\n",
        seen_[Verdict::kFaster], seen_[Verdict::kSlower], seen_[Verdict::kWrong],
        seen_[Verdict::kNoise], not_compared, only_old, only_new,
        compared == 0
            ? "nothing could be compared: measure again, with the cores at the same distance"
        : is_blind ? "no row of kolo's could be compared: measure again, with the cores at "
                     "the same distance"
                   : own_text());
    flush_or_throw(std::cout, kTable);
    if (is_blind) return kNothingCompared;
    return regressions_ > 0 ? kRegression : 0;
  }

 private:
  std::string own_text() const {
    if (own_compared_ == 0) return "the files have only peers' rows in common, which do not count";
    if (regressions_ == 0) return "no regression of kolo's";
    return fmt::format("{} regression{} of kolo's", regressions_, regressions_ == 1 ? "" : "s");
  }

  double least_percent_;
  std::map<Verdict, int> seen_;
  int own_compared_ = 0;
  int own_not_compared_ = 0;
  int regressions_ = 0;
};

void tell_machines(const Rows& old_rows, const Rows& new_rows) {
  const auto machines = [](const Rows& rows) {
    std::set<std::string> found;
    for (const auto& row : rows) {
      if (!row.second.machine.empty()) found.insert(row.second.machine);
    }
    return found;
  };
  const auto before = machines(old_rows);
  const auto now = machines(new_rows);
  if (!before.empty() && !now.empty() && before != now)
    std::cout << fmt::format("# measured on different machines: {}, now {}\n", *before.begin(),
                             *now.begin());
}

}  // namespace

int run_diff(const Arguments& arguments) {
  const Rows old_rows = read_rows(arguments.old_file);
  const Rows new_rows = read_rows(arguments.new_file);
  Comparison comparison(arguments.least_percent);
  std::set<Point> matched;
  std::size_t only_new = 0;
  for (const auto& [point, now] : new_rows) {
    if (find_before(old_rows, new_rows, point) == old_rows.end()) ++only_new;
  }
  if (only_new == new_rows.size()) {
    std::cerr << fmt::format(
        "kolo-bench: {} and {} have no row in common: a row is identified by library, transport, "
        "collective, ranks, bytes, type, op and other options\n",
        arguments.old_file, arguments.new_file);
    return kNothingCompared;
  }
  std::cout << fmt::format("# kolo-bench diff: {} against {}\n", arguments.new_file,
                           arguments.old_file);
  tell_machines(old_rows, new_rows);
  std::cout << fmt::format(
      "#{:<12} {:>6} {:>14} {:>5} {:>8} {:>8} {:>9} {:>24} {:>9} {:>9} {:>7}\n", "library", "over",
      "collective", "ranks", "bytes", "type", "op", "by", "old us", "new us", "change");
  for (const auto& [point, now] : new_rows) {
    const auto before = find_before(old_rows, new_rows, point);
    if (before == old_rows.end()) continue;
    matched.insert(before->first);
    comparison.add(before->first, before->second, point, now);
  }
  return comparison.end(old_rows.size() - matched.size(), only_new);
}

}  // namespace kolo::bench
