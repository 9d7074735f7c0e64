#include "train/experiments/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace kolo::train {

double mean_of(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void add(Row& row, const std::string& key, Values of_seeds) {
  row.numbers[key] = mean_of(of_seeds);
  row.of_seeds[key] = std::move(of_seeds);
}

Values ArmRuns::values(const std::function<double(const RunRecord&)>& number) const {
  Values values;
  for (const RunRecord* run : runs) values.push_back(number(*run));
  return values;
}

Values ArmRuns::values_of_workers(const std::function<double(const RankRecord&)>& number) const {
  return values([&number](const RunRecord& run) {
    double sum = 0;
    for (const RankRecord& rank : run.ranks) sum += rank.is_worker ? number(rank) : 0;
    return sum / run.workers;
  });
}

Values ArmRuns::images_per_second() const {
  return values([](const RunRecord& run) { return run.images_per_second(); });
}

Values ArmRuns::step_ms() const {
  return values_of_workers([](const RankRecord& rank) { return 1e3 * rank.step_seconds; });
}

Values ArmRuns::part_ms(Part part) const {
  const auto index = static_cast<std::size_t>(part);
  return values_of_workers([index](const RankRecord& rank) { return 1e3 * rank.parts[index]; });
}

std::vector<ArmRuns> arms_of(const PointResult& result) {
  std::vector<ArmRuns> arms;
  for (const RunRecord& run : result.runs) {
    auto place = std::ranges::find(arms, run.arm, &ArmRuns::arm);
    if (place == arms.end()) place = arms.insert(arms.end(), {run.arm, {}});
    place->runs.push_back(&run);
  }
  return arms;
}

void add_parts(Row& row, const ArmRuns& arm, double factor) {
  for (std::size_t part = 0; part < kPartNames.size(); ++part)
    row.numbers[fmt::format("part_{}", kPartNames[part])] =
        factor * mean_of(arm.part_ms(static_cast<Part>(part)));
}

std::string seeds_text(std::span<const Point> points) {
  const int seeds = points.front().options.seeds;
  if (seeds < 2) return "";
  return fmt::format(" Each number is a mean over {} seeds. Measured numbers are shown with {}.",
                     seeds, seeds == 2 ? "[the smaller, the larger]" : "± the standard deviation");
}

}  // namespace kolo::train
