#include "bench/commands/table_points.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "bench/measure/cores.h"
#include "bench/output/run_info.h"
#include "transports/posix/whole_file.h"

namespace kolo::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw std::invalid_argument(
      fmt::format("{}: {}; choose another --out folder, or remove this file", path, why));
}

// Throws for the first flag or fact that differs.
void require_same(const std::string& path, const TableFlags& before, const TableFlags& now) {
  TableFlags names = before;
  names.insert(now.begin(), now.end());
  for (const auto& name : names) {
    const auto value_in = [&name](const TableFlags& flags) {
      const auto found = flags.find(name.first);
      return found == flags.end() ? std::string("nothing") : "'" + found->second + "'";
    };
    if (value_in(before) == value_in(now)) continue;
    refuse(path, fmt::format("its points were measured in another way: {} was {} and is {}",
                             name.first, value_in(before), value_in(now)));
  }
}

}  // namespace

std::size_t wrong_of(const TablePoint& point) {
  std::size_t wrong = 0;
  for (const Json& row : point.rows) wrong += row.at("wrong").get<std::size_t>();
  return wrong;
}

TableFlags flags_of(const TableRequest& request) {
  return {
      {"--against", fmt::format("{}", fmt::join(request.against, ","))},
      {"--iterations", request.iterations == 0 ? "by size" : fmt::format("{}", request.iterations)},
      {"environment", run_info().at("environment").dump()},
      {"machine", describe_machine()},
      {"version", own_version()}};
}

TablePoints::TablePoints(const std::string& folder, TableFlags flags)
    : path_((fs::path(folder) / "points.jsonl").string()), flags_(std::move(flags)) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code)
    throw std::invalid_argument(fmt::format("--out {}: cannot write: {}", folder, code.message()));
  if (const std::string why = posix::why_unwritable(path_); !why.empty())
    throw std::invalid_argument(fmt::format("--out {}: cannot write: {}", folder, why));
  std::ifstream file(path_, std::ios::binary);
  read(std::string(std::istreambuf_iterator<char>(file), {}));
}

void TablePoints::read(const std::string& text) {
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    try {
      const Json json = Json::parse(line);
      if (number == 1) {
        require_same(path_, json.at("flags").get<TableFlags>(), flags_);
        continue;
      }
      points_.push_back({{json.at("transport"), json.at("ranks"), json.at("bytes")},
                         json.at("rows").get<std::vector<Json>>()});
      wrong_of(points_.back());
    } catch (const nlohmann::json::exception&) {
      refuse(path_, fmt::format("line {} was not written by kolo-bench table", number));
    }
  }
}

const TablePoint* TablePoints::find(const TableKey& key) const {
  const auto found = std::ranges::find(points_, key, &TablePoint::key);
  return found == points_.end() ? nullptr : &*found;
}

void TablePoints::add(TablePoint point) {
  const auto found = std::ranges::find(points_, point.key, &TablePoint::key);
  if (found == points_.end())
    points_.push_back(std::move(point));
  else
    *found = std::move(point);
  posix::write_whole(path_, text());
}

std::string TablePoints::text() const {
  std::string text = Json{{"flags", flags_}}.dump() + "\n";
  for (const TablePoint& point : points_) {
    text += Json{{"transport", point.key.transport},
                 {"ranks", point.key.ranks},
                 {"bytes", point.key.bytes},
                 {"rows", point.rows}}
                .dump() +
            "\n";
  }
  return text;
}

}  // namespace kolo::bench
