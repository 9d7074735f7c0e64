// kolo-train scale: throughput by number of workers, with the same work for each worker (weak) or
// for all together (strong).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "train/count_text.h"
#include "train/experiments/experiment.h"
#include "train/experiments/options.h"
#include "train/experiments/rows.h"
#include "train/flags/flag_values.h"

namespace kolo::train {
namespace {

constexpr const char* kStrongBatch = "--global-batch=128";

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void add_flags(CLI::App& app, ExperimentOptions& options) {
  app.add_option_function<std::string>(
         "--mode",
         [&options](const std::string& mode) {
           options.mode = mode == "strong" ? ScaleMode::strong : ScaleMode::weak;
         },
         "weak: --batch-size for each worker; strong: --global-batch for all [weak]")
      ->check(one_of("mode", {"weak", "strong"}));
  add_list_flag(app, "--ranks,--n_gpus,--n-gpus", "workers, one number per point", "1,2,4",
                options);
}

// As many threads at each point as the one with the most workers has cores for.
std::string threads_flag(const ExperimentOptions& options) {
  const auto most = static_cast<int>(options.values.back());
  return fmt::format("--threads={}", std::max(1, cores() / most));
}

std::vector<std::string> defaults(const ExperimentOptions& options) {
  std::vector<std::string> words = speed_defaults(options);
  words.push_back(threads_flag(options));
  if (options.mode == ScaleMode::strong) words.emplace_back(kStrongBatch);
  return words;
}

std::vector<Point> plan(const ExperimentOptions& options) {
  const bool is_strong = options.mode == ScaleMode::strong;
  const char* const other = is_strong ? "--batch-size" : "--global-batch";
  if (has_flag(options.training, other)) {
    throw UsageError(fmt::format("--mode {} does not use {}; give {}",
                                 is_strong ? "strong" : "weak", other,
                                 is_strong ? "--global-batch" : "--batch-size"));
  }
  std::vector<Point> points;
  const bool is_zero = value_of(options.training, "--threads") == "0";  // would differ by point
  for (const std::int64_t ranks : options.values) {
    std::vector<std::string> words{fmt::format("--ranks={}", ranks)};
    if (is_zero) words.push_back(threads_flag(options));
    points.push_back({count_text(ranks, "rank"), ranks, std::move(words), {}});
  }
  return points;
}

// The threads that compute and serve at the same time, if that is more than the cores; otherwise
// empty.
std::string crowd_text(const RunRecord& run, int threads) {
  const int busy = run.workers * threads + run.servers;
  if (busy <= cores()) return "";
  return fmt::format("{} threads on {}", busy, count_text(cores(), "core"));
}

Row row_of(const ArmRuns& arm, const PointResult& result, int threads) {
  Row row;
  row.arm = arm.arm;
  row.numbers["ranks"] = static_cast<double>(result.value);
  add(row, "images_per_second", arm.images_per_second());
  add(row, "images_per_second_per_rank",
      arm.values_of_workers([](const RankRecord& r) { return r.images_per_second; }));
  add(row, "step_ms", arm.step_ms());
  add(row, "exposed_ms", arm.part_ms(Part::exposed));
  row.note = crowd_text(arm.first(), threads);
  return row;
}

// Adds the ideal: as many times the throughput as there are more workers, from the arm's first
// point on.
void add_efficiency(std::vector<Row>& rows) {
  std::map<std::string, Row> first;
  for (Row& row : rows) {
    const Row& base = first.try_emplace(row.arm, row).first->second;
    const double ideal =
        base.numbers.at("images_per_second") * row.numbers.at("ranks") / base.numbers.at("ranks");
    row.numbers["ideal_images_per_second"] = ideal;
    row.numbers["efficiency_percent"] = 100 * row.numbers.at("images_per_second") / ideal;
  }
}

void add_findings(Summary& summary, const ExperimentOptions& options, const Options& o) {
  const bool is_strong = options.mode == ScaleMode::strong;
  summary.findings.push_back(
      is_strong ? fmt::format("Strong scaling: all workers together take {} in each iteration.",
                              count_text(o.global_batch, "sample"))
                : fmt::format("Weak scaling: each worker takes {} in each iteration.",
                              count_text(o.batch_size, "sample")));
  summary.findings.push_back(
      fmt::format("Each worker computes with {} at every point.", count_text(o.threads, "thread")));
  std::map<std::string, const Row*> last;
  std::vector<std::string> crowds;
  for (const Row& row : summary.rows) {
    last[row.arm] = &row;
    if (!row.note.empty())
      crowds.push_back(
          fmt::format("{} at {:.0f} ({})", row.arm, row.numbers.at("ranks"), row.note));
  }
  for (const auto& [arm, row] : last) {
    summary.findings.push_back(
        fmt::format("{}: {:.1f} images/s with {:.0f} ranks, {:.0f} % of the ideal.", arm,
                    row->numbers.at("images_per_second"), row->numbers.at("ranks"),
                    row->numbers.at("efficiency_percent")));
  }
  if (crowds.empty()) return;
  summary.findings.push_back(
      fmt::format("WARNING: more busy threads than cores, so these points show shared cores and "
                  "not only communication: {}.",
                  fmt::join(crowds, "; ")));
}

Summary summarize(const ExperimentOptions& options, std::span<const Point> points,
                  std::span<const PointResult> results) {
  Summary summary;
  const Options& o = points.front().options;
  summary.title =
      fmt::format("{} scaling: {}", options.mode == ScaleMode::strong ? "Strong" : "Weak", o.model);
  summary.columns = {{"ranks", "ranks", 0},
                     {"images_per_second", "images/s, all", 1},
                     {"images_per_second_per_rank", "images/s, each", 1},
                     {"ideal_images_per_second", "ideal, all", 1},
                     {"efficiency_percent", "efficiency, %", 0},
                     {"step_ms", "iteration, ms", 1},
                     {"exposed_ms", "exposed, ms", 1}};
  for (const PointResult& result : results) {
    for (const ArmRuns& arm : arms_of(result))
      summary.rows.push_back(row_of(arm, result, o.threads));
  }
  add_efficiency(summary.rows);
  add_findings(summary, options, o);
  summary.meaning = fmt::format(
      "Images/s are those of the counted iterations, without the first {}: summed over all "
      "workers, and divided by their number. Ideal: the images/s of the arm's first point, times "
      "the ratio of the ranks. Efficiency: measured, relative to the ideal. Dedicated servers of "
      "an arm run in addition to its ranks, and count as a thread each. Exposed: the worker's time "
      "for communication that computing does not hide.{}",
      o.skip_steps, seeds_text(points));
  summary.plots = {"scale"};
  return summary;
}

}  // namespace

Experiment scale_experiment() {
  return {.name = "scale",
          .purpose = "Measures throughput by number of workers: weak or strong scaling",
          .defaults = defaults,
          .fixed = {},
          .varied = "--ranks",
          .add_flags = add_flags,
          .plan = plan,
          .summarize = summarize};
}

}  // namespace kolo::train
