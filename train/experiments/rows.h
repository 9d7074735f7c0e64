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

// Adds the mean over seeds, which the table shows with its spread.
void add(Row& row, const std::string& key, Values of_seeds);

// The runs of one arm at one point, one per seed.
struct ArmRuns {
  std::string arm;
  std::vector<const RunRecord*> runs;

  const RunRecord& first() const { return *runs.front(); }
  // One value per seed.
  Values values(const std::function<double(const RunRecord&)>& number) const;
  // The same of the mean over workers.
  Values values_of_workers(const std::function<double(const RankRecord&)>& number) const;

  Values images_per_second() const;
  Values step_ms() const;
  Values part_ms(Part part) const;
};

// In the order of the runs. The runs are borrowed.
std::vector<ArmRuns> arms_of(const PointResult& result);

// Adds the parts of an iteration as "part_data" and so on, for the plots.
void add_parts(Row& row, const ArmRuns& arm, double factor);

// What a number of several seeds is, in words; or nothing.
std::string seeds_text(std::span<const Point> points);

}  // namespace kolo::train
