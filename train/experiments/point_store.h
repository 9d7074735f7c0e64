// Results of finished points: the file points.jsonl in the folder of the report, a line of JSON per
// point. Each line is on disk before the next point starts, so an ended experiment can go on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/experiments/experiment.h"

namespace kolo::train {

inline constexpr const char* kPointsFile = "points.jsonl";

// Flag to value. All points of an experiment have the same, so without the flag that varies.
using SharedFlags = std::map<std::string, std::string>;

// All flags of a point that affect its result, except `varied`.
SharedFlags shared_flags(std::string_view experiment, const Options& options,
                         std::string_view varied);

class PointStore {
 public:
  // Reads the points of an earlier start. An incomplete last line, of a process that was killed, is
  // ignored. Throws UsageError if the file was made with other flags, or is not such a file. An
  // empty folder: stores nothing.
  PointStore(const std::string& folder, SharedFlags flags);

  std::optional<PointResult> find(const std::string& name) const;
  bool is_empty() const { return results_.empty(); }

  // Appends a line, and waits until it is on disk. Throws ReportError.
  void add(const PointResult& result);

 private:
  void read();
  void read_line(const std::string& line);

  std::string path_;  // empty: none
  SharedFlags flags_;
  std::vector<PointResult> results_;
  std::size_t complete_bytes_ = 0;  // of the file
};

}  // namespace kolo::train
