// Experiments of several points. A point is one run of the arms with some flags changed.
//
//   plan       the points, from the flags
//   run        each point in new processes; its result is stored at once (point_store.h)
//   summarize  rows of numbers and findings, from the results of all points
//
// An experiment defines plan and summarize only: see sweep.cpp for a short one.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/experiment/run_record.h"
#include "train/options.h"

namespace CLI {
class App;
}

namespace kolo::train {

enum class ScaleMode {
  weak,   // the same work for each worker
  strong  // the same work for all workers together
};

// The flags of an experiment.
struct ExperimentOptions {
  std::vector<std::int64_t> values;  // one per point, ascending: batch sizes, ranks, samples
  ScaleMode mode = ScaleMode::weak;
  double target_accuracy = 0;         // 0: none
  std::string report;                 // folder; empty: none
  std::vector<std::string> training;  // all other flags: those of compare
  std::string help;                   // text to print, for --help; the others then mean nothing
};

struct Point {
  std::string name;                    // "batch 64"; unique in its experiment
  std::int64_t value = 0;              // of the flag that differs between points
  std::vector<std::string> arguments;  // of `kolo-train compare`
  Options options;                     // the same, parsed
  double weight = 1;                   // expected duration, in any unit
};

struct PointResult {
  std::string name;
  std::int64_t value = 0;
  std::vector<RunRecord> runs;
  std::string no_memory;  // why there are no runs: memory ran out; empty: there are
  std::string made_by;    // version, commit and processor
};

// A number of each row. Rows without it show "-".
struct Column {
  std::string key;  // in report.json
  std::string label;
  int digits = 0;
};

struct Row {
  std::string arm;
  std::map<std::string, double> numbers;
  // One value per seed, whose mean is in `numbers`.
  std::map<std::string, std::vector<double>> of_seeds;
  std::string note;
};

struct Summary {
  std::string title;
  std::vector<Column> columns;
  std::vector<Row> rows;
  std::vector<std::string> findings;  // one sentence each
  std::string meaning;                // how the numbers are made, for report.md
  std::vector<std::string> plots;     // names of the files, without .png
};

// A flag of compare that the experiment sets itself.
struct FixedFlag {
  std::string_view name;
  std::string_view instead;  // what to do instead, in words
};

struct Experiment {
  std::string_view name;     // the command
  std::string_view purpose;  // one line, for --help
  // Flags of compare that apply unless they are given: for experiments about speed, few iterations.
  std::vector<std::string> (*defaults)(const ExperimentOptions& options);
  std::vector<FixedFlag> fixed;
  std::string_view varied;  // the flag that differs between points, for the store
  void (*add_flags)(CLI::App& app, ExperimentOptions& options);
  // The points; their `arguments` without defaults and without those of the user.
  std::vector<Point> (*plan)(const ExperimentOptions& options);
  Summary (*summarize)(const ExperimentOptions& options, std::span<const Point> points,
                       std::span<const PointResult> results);
};

// All experiments.
std::span<const Experiment> experiments();

// The one of that command; null if there is none.
const Experiment* experiment_of(std::string_view command);

// The experiments, one file each.
Experiment sweep_experiment();
Experiment scale_experiment();
Experiment scale_data_experiment();
Experiment ladder_experiment();

}  // namespace kolo::train
