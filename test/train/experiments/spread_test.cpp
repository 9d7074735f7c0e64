// Tables of experiments with several seeds, from artificial records.
#include "test/support/catch.h"
#include "test/train/report/made_up_report.h"
#include "train/experiments/experiment.h"
#include "train/experiments/experiment_report.h"

namespace {

using namespace kolo::train;

// The table of an experiment of one point, in which each seed is 10 images/s faster.
std::string table_of(std::string_view name, int seeds) {
  ExperimentOptions options;
  options.values = {2};
  Point point;
  point.options.seeds = seeds;
  PointResult result;
  result.value = 2;
  for (int seed = 1; seed <= seeds; ++seed) {
    result.runs.push_back(kolo::test::made_up_run("ring", static_cast<std::uint64_t>(seed), 0));
    for (RankRecord& rank : result.runs.back().ranks) rank.images_per_second = 80 + 5 * seed;
    result.runs.back().training_seconds = seed;
  }
  ExperimentReport report;
  report.summary =
      experiment_of(name)->summarize(options, std::span(&point, 1), std::span(&result, 1));
  return experiment_markdown(report, "none");
}

}  // namespace

TEST_CASE("the table of an experiment shows the spread of measured numbers over seeds") {
  const std::string name = GENERATE("sweep", "scale", "scale-data", "ladder");
  INFO(name);
  CHECK_THAT(table_of(name, 1), ContainsSubstring("| 170.0 |"));
  CHECK_THAT(table_of(name, 2), ContainsSubstring("| 175.0 [170.0, 180.0] |") &&
                                    ContainsSubstring("with [the smaller, the larger]"));
  CHECK_THAT(table_of(name, 3),
             ContainsSubstring("| 180.0 ± 10.0 |") && ContainsSubstring("over 3 seeds"));
}

TEST_CASE("scale shows the spread of each worker, and scale-data that of an epoch") {
  CHECK_THAT(table_of("scale", 2), ContainsSubstring("| 87.5 [85.0, 90.0] |"));
  CHECK_THAT(table_of("scale-data", 2), ContainsSubstring("| 1.50 [1.00, 2.00] |"));
}
