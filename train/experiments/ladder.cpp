// kolo-train ladder: all ways to exchange gradients of a ring, from after backward to hidden inside
// it (the word sync= of an arm).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "train/count_text.h"
#include "train/experiments/experiment.h"
#include "train/experiments/options.h"
#include "train/experiments/rows.h"

namespace kolo::train {
namespace {

void add_flags(CLI::App&, ExperimentOptions&) {}

// One point: the rungs train in turns, so that a machine's bad minute hits all.
std::vector<Point> plan(const ExperimentOptions&) {
  std::vector<std::string> arms;
  for (const std::string_view sync : kSyncNames) arms.push_back(fmt::format("ring:sync={}", sync));
  return {{"all rungs", 0, {fmt::format("--strategies={}", fmt::join(arms, ","))}, {}}};
}

Row row_of(const ArmRuns& arm, std::string_view sync, double naive_ms) {
  Row row;
  row.arm = sync;
  add(row, "step_ms", arm.step_ms());
  add(row, "exposed_ms", arm.part_ms(Part::exposed));
  const double step_ms = row.numbers.at("step_ms");
  row.numbers["exposed_percent"] = 100 * row.numbers.at("exposed_ms") / step_ms;
  add(row, "images_per_second", arm.images_per_second());
  row.numbers["speedup"] = naive_ms / step_ms;
  add_parts(row, arm, 1);
  return row;
}

Summary summarize(const ExperimentOptions&, std::span<const Point> points,
                  std::span<const PointResult> results) {
  Summary summary;
  const Options& o = points.front().options;
  summary.title =
      fmt::format("Rungs of synchronization: {}, {}", o.model, count_text(o.ranks, "worker"));
  summary.columns = {{"step_ms", "iteration, ms", 1},
                     {"exposed_ms", "exposed, ms", 1},
                     {"exposed_percent", "exposed, %", 1},
                     {"images_per_second", "images/s, all", 1},
                     {"speedup", "times naive", 2}};
  for (const PointResult& result : results) {
    const std::vector<ArmRuns> arms = arms_of(result);
    // The runs have the order of the flags, which is that of the names.
    for (std::size_t i = 0; i < arms.size() && i < kSyncNames.size(); ++i)
      summary.rows.push_back(row_of(arms[i], kSyncNames[i], mean_of(arms.front().step_ms())));
  }
  if (!summary.rows.empty()) {
    const Row& best = *std::ranges::min_element(
        summary.rows, {}, [](const Row& row) { return row.numbers.at("step_ms"); });
    summary.findings.push_back(fmt::format("The fastest is sync={}: {:.2f} times as fast as naive.",
                                           best.arm, best.numbers.at("speedup")));
  }
  summary.meaning = fmt::format(
      "naive: one all-reduce per parameter, after backward. flat: one for all, after backward. "
      "overlap: each parameter during backward. bucketed: buckets of parameters during backward "
      "(the default). prioritized: small buckets, the first layers first, until the next forward "
      "needs them. fusion: ready gradients, agreed once per cycle. Iterations are the counted "
      "ones, without the first {}; exposed is the worker's time for communication that computing "
      "does not hide.{}",
      o.skip_steps, seeds_text(points));
  summary.plots = {"ladder"};
  return summary;
}

}  // namespace

Experiment ladder_experiment() {
  return {.name = "ladder",
          .purpose = "Measures all rungs of sync= of a ring: iteration and exposed communication",
          .defaults = speed_defaults,
          .fixed = {{"--strategies", "it measures all rungs of a ring"},
                    {"--strategy", "it measures all rungs of a ring"}},
          .varied = "",
          .add_flags = add_flags,
          .plan = plan,
          .summarize = summarize};
}

}  // namespace kolo::train
