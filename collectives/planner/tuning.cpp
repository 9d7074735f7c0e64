#include "collectives/planner/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "collectives/algorithms/algorithm_table.h"

namespace kolo::inline v0 {
namespace {

constexpr std::string_view kHeading =
    "# collective  ranks  transport  bytes  algorithm: the fastest that was measured\n";

std::optional<Collective> collective_of(std::string_view name) {
  for (const Algorithm& algorithm : algorithms()) {
    if (to_string(algorithm.collective) == name) return algorithm.collective;
  }
  return std::nullopt;
}

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms()) {
    const std::string name(to_string(algorithm.collective));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

// The line, shortened for an error message. A wrong file may have one long line, or be binary.
std::string shown(std::string_view line) {
  constexpr std::size_t kMost = 60;
  std::string text(line.substr(0, kMost));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return line.size() > kMost ? text + "..." : text;
}

TuningPoint parse_point(const std::string& line) {
  std::istringstream words(line);
  words.exceptions(std::ios::badbit);  // throws if memory runs out; that is not the end of the text
  std::string collective;
  long long ranks = 0;
  long long bytes = -1;
  std::string rest;
  TuningPoint point;
  if (!(words >> collective >> ranks >> point.transport >> bytes >> point.algorithm) ||
      words >> rest || ranks < 1 || ranks > 1'000'000 || bytes < 0) {
    throw std::invalid_argument(
        fmt::format("'{}' is not 'COLLECTIVE RANKS TRANSPORT BYTES ALGORITHM'; kolo-bench tune "
                    "--out FILE writes such a table",
                    shown(line)));
  }
  const auto found = collective_of(collective);
  if (!found) {
    throw std::invalid_argument(fmt::format("no collective '{}'; expected one of {}",
                                            shown(collective),
                                            fmt::join(collective_names(), ", ")));
  }
  point.collective = *found;
  point.ranks = static_cast<int>(ranks);
  point.bytes = static_cast<std::size_t>(bytes);
  find_algorithm(point.collective, point.algorithm);  // throws for an unknown algorithm
  return point;
}

// Distance of two sizes on a logarithmic scale.
double distance(std::size_t one, std::size_t other) {
  return std::abs(std::log2(static_cast<double>(one) + 1) -
                  std::log2(static_cast<double>(other) + 1));
}

}  // namespace

TuningTable::TuningTable(std::vector<TuningPoint> points) : points_(std::move(points)) {}

TuningTable TuningTable::parse(std::string_view text, std::string_view source) {
  TuningTable table;
  std::istringstream lines{std::string(text)};
  lines.exceptions(std::ios::badbit);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    try {
      table.points_.push_back(parse_point(line));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}, line {}: {}", source, number, error.what()));
    }
  }
  return table;
}

TuningTable TuningTable::read(const std::string& path) {
  std::error_code ignored;
  // Reading another kind of file may never end, or block forever (a pipe without a writer).
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    throw std::invalid_argument(
        fmt::format("the tuning table '{}' cannot be read: it is not a regular file", path));
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) {
    throw std::invalid_argument(
        fmt::format("the tuning table '{}' cannot be read: {}", path, std::strerror(errno)));
  }
  return parse(text, fmt::format("the tuning table '{}'", path));
}

std::string TuningTable::format() const {
  std::string text(kHeading);
  for (const TuningPoint& point : points_) {
    text += fmt::format("{} {} {} {} {}\n", to_string(point.collective), point.ranks,
                        point.transport, point.bytes, point.algorithm);
  }
  return text;
}

std::optional<std::string_view> TuningTable::find(Collective collective, int ranks,
                                                  std::string_view transport,
                                                  std::size_t bytes) const {
  const TuningPoint* nearest = nullptr;
  for (const TuningPoint& point : points_) {
    if (point.collective != collective || point.ranks != ranks || point.transport != transport) {
      continue;
    }
    if (nearest == nullptr || distance(point.bytes, bytes) < distance(nearest->bytes, bytes)) {
      nearest = &point;
    }
  }
  if (nearest == nullptr) return std::nullopt;
  return nearest->algorithm;
}

}  // namespace kolo::inline v0
