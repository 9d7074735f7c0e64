// Numbers of the runs of a point, for the rows of an experiment.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "train/experiments/experiment.h"

namespace kolo::train {

using Values = std::vector<double>;

double mean_of(const Values& values);

// Adds a measured number: the mean over seeds, and the single values, for the spread in the table.
void add(Row& row, const std::string& key, Values of_seeds);

// The runs of one arm at one point, one per seed.
struct ArmRuns {
  std::string arm;
  std::vector<const RunRecord*> runs;

  const RunRecord& first() const { return *runs.front(); }
  // One value per seed.
  Values values(const std::function<double(const RunRecord&)>& number) const;
  // One value per seed: the mean over the workers of that run.
  Values values_of_workers(const std::function<double(const RankRecord&)>& number) const;

  Values images_per_second() const;
  Values step_ms() const;
  Values part_ms(Part part) const;
};

// In the order of the runs. The runs are borrowed.
std::vector<ArmRuns> arms_of(const PointResult& result);

// Adds the parts of an iteration as "part_data" and so on, for the plots.
void add_parts(Row& row, const ArmRuns& arm, double factor);

// A sentence on means and spreads, with a space before it. Empty for one seed.
std::string seeds_text(std::span<const Point> points);

}  // namespace kolo::train
