// kolo-bench timeline: the timelines of several ranks as one, which a viewer shows side by side.
#pragma once

#include <string>
#include <vector>

namespace kolo::bench {

struct TimelineRequest {
  std::vector<std::string> files;  // as KOLO_TIMELINE leaves them: FILE.RANK
  std::string out = "timeline.json";
};

// Writes `out` whole or not at all; returns the exit code. Ranks of one host share a clock; those
// of others keep theirs. std::runtime_error names a file that cannot be read, or is no timeline.
int run_timeline(const TimelineRequest& request);

}  // namespace kolo::bench
