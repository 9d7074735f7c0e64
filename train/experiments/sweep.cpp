// kolo-train sweep: speed and memory of one process by batch size.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "train/count_text.h"
#include "train/experiments/experiment.h"
#include "train/experiments/options.h"
#include "train/experiments/rows.h"

namespace kolo::train {
namespace {

constexpr double kAlmostBest = 0.95;  // of the images per second of the best batch size

void add_flags(CLI::App& app, ExperimentOptions& options) {
  add_list_flag(app, "--batch-sizes,--batch_sizes", "samples of an iteration, one per point",
                "64,128,256,512,1024", options);
}

std::vector<std::string> defaults(const ExperimentOptions& options) {
  std::vector<std::string> words = speed_defaults(options);
  words.insert(words.end(), {"--ranks=1", "--strategies=ring"});
  return words;
}

std::vector<Point> plan(const ExperimentOptions& options) {
  std::vector<Point> points;
  for (const std::int64_t batch : options.values)
    points.push_back(
        {fmt::format("batch {}", batch), batch, {fmt::format("--batch-size={}", batch)}, {}});
  return points;
}

Row row_of(const PointResult& result) {
  Row row;
  row.numbers["batch_size"] = static_cast<double>(result.value);
  if (!result.no_memory.empty()) {
    row.note = result.no_memory;
    return row;
  }
  const ArmRuns arm = arms_of(result).front();
  add(row, "images_per_second", arm.images_per_second());
  add(row, "step_ms", arm.step_ms());
  add(row, "peak_mib", arm.values_of_workers([](const RankRecord& r) { return r.peak_mib; }));
  return row;
}

double speed_of(const Row& row) {
  const auto found = row.numbers.find("images_per_second");
  return found == row.numbers.end() ? 0 : found->second;
}

std::string described(const Row& row) {
  return fmt::format("batch size {:.0f} ({:.1f} images/s, {:.0f} MiB)",
                     row.numbers.at("batch_size"), speed_of(row), row.numbers.at("peak_mib"));
}

void find_best(Summary& summary) {
  const auto best = std::ranges::max_element(summary.rows, {}, speed_of);
  if (best == summary.rows.end() || speed_of(*best) == 0) return;
  for (Row& row : summary.rows) {
    if (speed_of(row) > 0) row.numbers["percent_of_best"] = 100 * speed_of(row) / speed_of(*best);
  }
  best->note = "best";
  summary.findings.push_back(fmt::format("The fastest is {}.", described(*best)));
  const auto almost = std::ranges::find_if(
      summary.rows, [&](const Row& row) { return speed_of(row) >= kAlmostBest * speed_of(*best); });
  if (almost == best) return;
  summary.findings.push_back(fmt::format("The smallest within {:.0f} % of it is {}.",
                                         100 * (1 - kAlmostBest), described(*almost)));
}

Summary summarize(const ExperimentOptions& options, std::span<const Point> points,
                  std::span<const PointResult> results) {
  Summary summary;
  const Options& o = points.front().options;
  summary.title = fmt::format("Batch sizes: {} in one process", o.model);
  summary.columns = {{"batch_size", "batch size", 0},
                     {"images_per_second", "images/s", 1},
                     {"percent_of_best", "% of the best", 0},
                     {"step_ms", "iteration, ms", 1},
                     {"peak_mib", "peak memory, MiB", 0}};
  for (const PointResult& result : results) summary.rows.push_back(row_of(result));
  find_best(summary);
  if (!results.empty() && !results.back().no_memory.empty())
    summary.findings.push_back(fmt::format("It ended at batch size {} of {}: {}.",
                                           results.back().value, options.values.back(),
                                           results.back().no_memory));
  summary.meaning = fmt::format(
      "Each batch size ran in a process of its own, with {}. Images/s are those of the "
      "counted iterations, without the first {}. They include the last iteration of an epoch, "
      "which has fewer samples unless the batch size divides their number. Peak memory is the "
      "largest resident memory of "
      "the process.{} A larger batch needs fewer updates for an epoch, so a higher speed need "
      "not mean a shorter way to an accuracy: see scale-data.",
      count_text(o.threads, "thread"), o.skip_steps, seeds_text(points));
  summary.plots = {"sweep"};
  return summary;
}

}  // namespace

Experiment sweep_experiment() {
  return {.name = "sweep",
          .purpose = "Measures speed and memory of one process by batch size, until memory ends",
          .defaults = defaults,
          .fixed = {{"--batch-size", "give --batch-sizes"},
                    {"--global-batch", "give --batch-sizes"},
                    {"--ranks", "it measures one process; see scale"},
                    {"--n-gpus", "it measures one process; see scale"},
                    {"--strategies", "it measures one process; see scale"},
                    {"--strategy", "it measures one process; see scale"}},
          .varied = "--batch-size",
          .add_flags = add_flags,
          .plan = plan,
          .summarize = summarize};
}

}  // namespace kolo::train
