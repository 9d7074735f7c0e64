// kolo-bench timeline: merges the timelines of several ranks into one file, which a viewer shows
// side by side.
#pragma once

#include <string>
#include <vector>

namespace kolo::bench {

struct TimelineRequest {
  std::vector<std::string> files;  // as KOLO_TIMELINE writes them: FILE.RANK.json
  std::string out = "timeline.json";
};

// Writes `out` as a whole or not at all; returns the exit code. Ranks of one host share a clock;
// ranks of other hosts keep theirs. std::invalid_argument names a file that cannot be read, is not
// a timeline, or is given twice.
int run_timeline(const TimelineRequest& request);

}  // namespace kolo::bench
