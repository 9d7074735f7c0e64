// The text of `kolo-bench table`, in Markdown: printed, and the file table.md.
#pragma once

#include <string>
#include <vector>

#include "bench/commands/table_points.h"

namespace kolo::bench {

// A point of the table, or why it is missing.
struct TableEntry {
  TableKey key;
  const TablePoint* point = nullptr;
  std::string why_missing;
};

// "6 processes on 2 cores" if a point has more processes than cores; otherwise empty.
std::string oversubscription_text(const nlohmann::ordered_json& row);

// "kolo 12.3 ms, gloo 45.6 ms": the medians of a point.
std::string medians_text(const TablePoint& point);

// A table per transport, with definitions below. `incomplete`: why the command ended early; empty:
// it did not.
std::string table_text(const TableRequest& request, const std::vector<TableEntry>& entries,
                       const std::string& incomplete);

}  // namespace kolo::bench
