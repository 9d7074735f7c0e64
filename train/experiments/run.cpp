#include "train/experiments/run.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <set>

#include "train/count_text.h"
#include "train/experiment/arm_runner.h"
#include "train/experiment/rank_process.h"
#include "train/experiments/experiment_report.h"
#include "train/experiments/options.h"
#include "train/experiments/point_store.h"
#include "train/report/machine_info.h"
#include "train/report/publish.h"

namespace kolo::train {
namespace {

struct Outcome {
  std::vector<PointResult> results;  // in the order of the points
  int exit_code = 0;
  std::string incomplete;  // why points are missing; empty: none is
};

int runs_of(const Point& point) {
  return static_cast<int>(point.options.arms.size()) * point.options.seeds;
}

std::string made_by() {
  const auto machine = machine_info();
  return fmt::format("kolo {}, commit {}, {} cores of {}", machine.at("kolo"), machine.at("commit"),
                     machine.at("cores"), machine.at("processor"));
}

// Runs the missing points in order. Lack of memory ends a sweep, which is its result; in other
// experiments it is a failure.
class PointRunner {
 public:
  PointRunner(const Experiment& experiment, const std::vector<Point>& points, PointStore& store)
      : is_sweep_(experiment.name == "sweep"),
        points_(points),
        store_(store),
        progress_(stderr, weights()) {}

  Outcome run() {
    Outcome outcome;
    for (const Point& point : points_) {
      if (const auto finished = store_.find(point.name)) {
        outcome.results.push_back(*finished);
      } else if (!run_point(point, outcome)) {
        return outcome;
      }
      if (!outcome.results.back().no_memory.empty()) return outcome;
    }
    return outcome;
  }

 private:
  // Of all runs that are to come.
  std::vector<double> weights() {
    std::vector<double> weights;
    for (const Point& point : points_) {
      if (!store_.find(point.name)) weights.insert(weights.end(), runs_of(point), point.weight);
    }
    all_runs_ = static_cast<int>(weights.size());
    return weights;
  }

  bool run_point(const Point& point, Outcome& outcome) {
    const ExperimentResult ended =
        run_arms(point.options, point.arguments,
                 {progress_, points_.size() > 1 ? point.name : "", done_runs_, all_runs_});
    done_runs_ += runs_of(point);
    PointResult result{point.name, point.value, ended.runs, "", made_by()};
    if (ended.exit_code != 0 && ended.is_out_of_memory && is_sweep_) {
      result.runs.clear();
      result.no_memory = ended.message.ends_with("memory ran out")
                             ? "memory ran out"
                             : "the system killed the process, probably because memory ran out";
    } else if (ended.exit_code != 0) {
      fail(outcome, ended.exit_code, ended.message);
      return false;
    }
    outcome.results.push_back(std::move(result));
    try {
      store_.add(outcome.results.back());
    } catch (const ReportError& error) {  // the results so far are printed
      fail(outcome, 1, error.what());
    }
    return outcome.exit_code == 0;
  }

  void fail(Outcome& outcome, int exit_code, const std::string& why) const {
    outcome.exit_code = exit_code;
    outcome.incomplete = fmt::format("{} of {} ran: {}", outcome.results.size(),
                                     count_text(points_.size(), "point"), why);
  }

  bool is_sweep_;
  const std::vector<Point>& points_;
  PointStore& store_;
  int all_runs_ = 0;
  int done_runs_ = 0;
  ProgressBar progress_;
};

// Says that results of different builds or machines are side by side.
void warn_of_mixture(const std::vector<PointResult>& results, Summary& summary) {
  std::set<std::string> makers{made_by()};  // the report's
  for (const PointResult& result : results) makers.insert(result.made_by);
  if (makers.size() < 2) return;
  summary.findings.push_back(
      fmt::format("WARNING: the points were made on {} builds or machines: "
                  "{}.",
                  makers.size(), fmt::join(makers, "; ")));
}

void publish_experiment(const Experiment& experiment, const ExperimentOptions& options,
                        const std::vector<std::string>& arguments, const std::vector<Point>& points,
                        Outcome outcome) {
  ExperimentReport report;
  report.experiment = experiment.name;
  report.command = fmt::format("kolo-train {}", fmt::join(arguments, " "));
  report.summary = experiment.summarize(options, points, outcome.results);
  warn_of_mixture(outcome.results, report.summary);
  if (!outcome.incomplete.empty()) {
    report.summary.findings.push_back(fmt::format(
        "INCOMPLETE: {}. The same command measures the missing points.", outcome.incomplete));
  }
  report.results = std::move(outcome.results);
  publish(options.report, {experiment_text(report), experiment_json(report),
                           [&report](const std::string& no_plots) {
                             return experiment_markdown(report, no_plots);
                           }});
}

}  // namespace

int run_experiment(const Experiment& experiment, const ExperimentOptions& options,
                   const std::vector<std::string>& arguments) {
  if (is_launched()) {
    throw UsageError(
        fmt::format("{} starts its ranks itself; run it without a launcher", experiment.name));
  }
  const std::vector<Point> points = checked_points(experiment, options);
  require_report_folder(options.report);
  PointStore store(options.report,
                   shared_flags(experiment.name, points.front().options, experiment.varied));
  if (!store.is_empty())
    std::fprintf(
        stderr,
        "kolo-train: --report %s: keeps the finished points there and measures the others\n",
        options.report.c_str());
  Outcome outcome = PointRunner(experiment, points, store).run();
  const int exit_code = outcome.exit_code;
  if (!outcome.results.empty())
    publish_experiment(experiment, options, arguments, points, std::move(outcome));
  return exit_code;
}

std::span<const Experiment> experiments() {
  static const std::array<Experiment, 4> all{sweep_experiment(), scale_experiment(),
                                             scale_data_experiment(), ladder_experiment()};
  return all;
}

const Experiment* experiment_of(std::string_view command) {
  for (const Experiment& one : experiments()) {
    if (one.name == command) return &one;
  }
  return nullptr;
}

}  // namespace kolo::train
