// Numbers of the runs of a point, for the rows of an experiment.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "train/experiments/experiment.h"

namespace kolo::train {

// The runs of one arm at one point, one per seed.
struct ArmRuns {
  std::string arm;
  std::vector<const RunRecord*> runs;

  const RunRecord& first() const { return *runs.front(); }
  // Over the seeds.
  double mean(const std::function<double(const RunRecord&)>& number) const;
  // Over the seeds and the workers.
  double mean_of_workers(const std::function<double(const RankRecord&)>& number) const;

  double images_per_second() const;
  double step_ms() const;
  double part_ms(Part part) const;
};

// In the order of the runs. The runs are borrowed.
std::vector<ArmRuns> arms_of(const PointResult& result);

// Adds the parts of an iteration as "part_data" and so on, for the plots.
void add_parts(Row& row, const ArmRuns& arm, double factor);

// "means over 3 seeds", or nothing.
std::string seeds_text(std::span<const Point> points);

}  // namespace kolo::train
