// kolo-bench timeline: merges the timelines of several ranks into one file, which a viewer shows
// side by side, and prints the rank that is usually late.
//
// Times of hosts with different clocks are shifted by the difference of the hosts' wall clocks, and
// a line says so. A merged file has the clock of the first file.
#pragma once

#include <string>
#include <vector>

namespace kolo::bench {

struct TimelineRequest {
  std::vector<std::string> files;  // as KOLO_TIMELINE writes them: FILE.RANK.json
  std::string out = "timeline.json";
};

// Writes `out` as a whole or not at all; returns the exit code. std::invalid_argument names a file
// that cannot be read, is not a timeline, or is given twice.
int run_timeline(const TimelineRequest& request);

}  // namespace kolo::bench
