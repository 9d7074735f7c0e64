// kolo-bench tune: measures all algorithms on a grid and writes a table of the fastest for
// KOLO_TUNING. It also reports how often the planner's choice is near the best.
//
// Each transport and number of ranks is a job of its own, in sequence. Rank 0 of each job appends
// its points to a memory file, which tune reads after all jobs.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace kolo::bench {

struct Arguments;
class ComparisonReport;
class JsonLines;

struct TuneRequest {
  std::vector<std::string> collectives;  // commands of collectives
  std::vector<int> ranks;
  std::vector<std::string> transports;
  std::string out;     // the table
  std::string points;  // in a job of tune: the file to which rank 0 appends its points
};

// Returns an exit code; writes the table only if it is 0. std::invalid_argument before anything is
// measured if the table could not be written.
int run_tune(const Arguments& arguments, int argc, const char* const* argv);

// For rank 0 of a job of tune.
std::unique_ptr<ComparisonReport> make_tune_report(const Arguments& arguments, std::ostream& table,
                                                   JsonLines& json);

}  // namespace kolo::bench
