// kolo-bench tune: measures all algorithms on a grid, writes a table of the fastest for
// KOLO_TUNING, and says how often the planner's choice is near the best.
//
// A job of its own for every transport and number of ranks, one after the other; rank 0 of each
// puts its points down in a file beside the table, which tune reads when all have ended.
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
  std::vector<std::string> collectives;  // commands that measure
  std::vector<int> ranks;
  std::vector<std::string> transports;
  std::string out;     // the table
  std::string points;  // of a rank of tune's own: where rank 0 puts its points down
};

// Returns an exit code. Writes the table where it is 0, and nothing otherwise.
// std::invalid_argument where it could not be written, before anything is measured.
int run_tune(const Arguments& arguments, int argc, const char* const* argv);

// Of rank 0 of one of its jobs.
std::unique_ptr<ComparisonReport> make_tune_report(const Arguments& arguments, std::ostream& table,
                                                   JsonLines& json);

}  // namespace kolo::bench
