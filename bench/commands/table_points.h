// Finished points of `kolo-bench table`: the file points.jsonl in its folder. The first line has
// the flags and the version, each other line a point with its rows. The file is replaced as a whole
// after each point, so it is complete whenever the command is interrupted.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/commands/table.h"

namespace kolo::bench {

struct TablePoint {
  TableKey key;
  std::vector<nlohmann::ordered_json> rows;  // kolo's, then the peers', as --json writes them
};

// The number of wrong elements in a point, over all libraries.
std::size_t wrong_of(const TablePoint& point);

// What must be equal for all points of a folder: flags, environment, machine and version, by name.
using TableFlags = std::map<std::string, std::string>;
TableFlags flags_of(const TableRequest& request);

class TablePoints {
 public:
  // Makes the folder and reads the points of an earlier start. Throws std::invalid_argument
  // if they were made with other TableFlags, if the file is of another kind, or if the folder
  // cannot be written.
  TablePoints(const std::string& folder, TableFlags flags);

  bool is_empty() const { return points_.empty(); }
  // Null if the point has not been measured.
  const TablePoint* find(const TableKey& key) const;
  // Stores a point; it replaces an earlier one with the same key. Error kSystem if the file cannot
  // be written.
  void add(TablePoint point);

 private:
  void read(const std::string& text);
  std::string text() const;

  std::string path_;
  TableFlags flags_;
  std::vector<TablePoint> points_;
};

}  // namespace kolo::bench
