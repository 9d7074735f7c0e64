// kolo-train scale-data: time of an epoch, and to a target accuracy, by amount of data.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "train/count_text.h"
#include "train/experiments/experiment.h"
#include "train/experiments/options.h"
#include "train/experiments/rows.h"
#include "train/flags/flag_values.h"

namespace kolo::train {
namespace {

void add_flags(CLI::App& app, ExperimentOptions& options) {
  add_list_flag(app, "--train-size,--train_size", "training samples, one number per point",
                "1000,2000,4000", options);
  app.add_option("--target-accuracy,--target_accuracy", options.target_accuracy,
                 "test accuracy whose time is reported, as 0.9 [none]")
      ->check(real_number(0, Least::excluded, 1));
}

std::vector<std::string> defaults(const ExperimentOptions&) { return {}; }

std::vector<Point> plan(const ExperimentOptions& options) {
  std::vector<Point> points;
  for (const std::int64_t size : options.values)
    points.push_back(
        {count_text(size, "sample"), size, {fmt::format("--train-size={}", size)}, {}});
  return points;
}

// Seconds of training until the first evaluated epoch that reached the target; below 0: none did.
double seconds_to(const RunRecord& run, double target) {
  const auto reached = std::ranges::find_if(run.epochs, [target](const EpochRecord& epoch) {
    return epoch.is_evaluated && epoch.test_accuracy >= target;
  });
  return reached == run.epochs.end() ? -1 : reached->training_seconds;
}

Row row_of(const ArmRuns& arm, const PointResult& result, double target) {
  Row row;
  row.arm = arm.arm;
  row.numbers["train_size"] = static_cast<double>(result.value);
  add(row, "epoch_seconds", arm.values([](const RunRecord& run) {
    return run.training_seconds / static_cast<double>(run.epochs.size());
  }));
  add(row, "images_per_second", arm.images_per_second());
  add(row, "accuracy_percent",
      arm.values([](const RunRecord& run) { return 100 * run.epochs.back().test_accuracy; }));
  add_parts(row, arm, row.numbers.at("epoch_seconds") / mean_of(arm.step_ms()));
  if (target == 0) return row;
  const bool is_reached = std::ranges::all_of(
      arm.runs, [target](const RunRecord* run) { return seconds_to(*run, target) >= 0; });
  if (is_reached) {
    add(row, "target_seconds",
        arm.values([target](const RunRecord& run) { return seconds_to(run, target); }));
  } else {
    row.note = "target not reached";
  }
  return row;
}

Summary summarize(const ExperimentOptions& options, std::span<const Point> points,
                  std::span<const PointResult> results) {
  Summary summary;
  const Options& o = points.front().options;
  const double target = options.target_accuracy;
  summary.title = fmt::format("Amount of data: {}", o.model);
  summary.columns = {{"train_size", "training samples", 0},
                     {"epoch_seconds", "epoch, s", 2},
                     {"images_per_second", "images/s, all", 1},
                     {"accuracy_percent", "test accuracy, %", 1}};
  if (target > 0)
    summary.columns.push_back({"target_seconds", fmt::format("to {:g} %, s", 100 * target), 2});
  for (const PointResult& result : results) {
    for (const ArmRuns& arm : arms_of(result)) summary.rows.push_back(row_of(arm, result, target));
  }
  summary.findings.push_back(
      fmt::format("Every point trained for {} with {}, {} each.", count_text(o.epochs, "epoch"),
                  count_text(o.ranks, "worker"), count_text(o.threads, "thread")));
  if (target > 0) {
    const auto missed = std::ranges::count_if(
        summary.rows, [](const Row& row) { return !row.numbers.contains("target_seconds"); });
    summary.findings.push_back(
        fmt::format("A test accuracy of {:g} % was reached in {} of {} rows.", 100 * target,
                    static_cast<long>(summary.rows.size()) - missed, summary.rows.size()));
  }
  summary.meaning = fmt::format(
      "Seconds are those of training, without start-up, evaluation and checks of the replicas. "
      "The accuracy is that after the last epoch, over all test samples. The time to an accuracy "
      "ends with the first evaluated epoch that reached it. The plot divides an epoch as "
      "the counted iterations, which are those without the first {}.{}",
      o.skip_steps, seeds_text(points));
  summary.plots = {"scale_data"};
  return summary;
}

}  // namespace

Experiment scale_data_experiment() {
  return {.name = "scale-data",
          .purpose = "Measures the time of an epoch, and to an accuracy, by amount of data",
          .defaults = defaults,
          .fixed = {{"--steps", "each point trains whole epochs; give --epochs"}},
          .varied = "--train-size",
          .add_flags = add_flags,
          .plan = plan,
          .summarize = summarize};
}

}  // namespace kolo::train
