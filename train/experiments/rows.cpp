#include "train/experiments/rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace kolo::train {

double ArmRuns::mean(const std::function<double(const RunRecord&)>& number) const {
  double sum = 0;
  for (const RunRecord* run : runs) sum += number(*run);
  return sum / static_cast<double>(runs.size());
}

double ArmRuns::mean_of_workers(const std::function<double(const RankRecord&)>& number) const {
  return mean([&number](const RunRecord& run) {
    double sum = 0;
    for (const RankRecord& rank : run.ranks) sum += rank.is_worker ? number(rank) : 0;
    return sum / run.workers;
  });
}

double ArmRuns::images_per_second() const {
  return mean([](const RunRecord& run) { return run.images_per_second(); });
}

double ArmRuns::step_ms() const {
  return 1e3 * mean_of_workers([](const RankRecord& rank) { return rank.step_seconds; });
}

double ArmRuns::part_ms(Part part) const {
  const auto index = static_cast<std::size_t>(part);
  return 1e3 * mean_of_workers([index](const RankRecord& rank) { return rank.parts[index]; });
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
        factor * arm.part_ms(static_cast<Part>(part));
}

std::string seeds_text(std::span<const Point> points) {
  const int seeds = points.front().options.seeds;
  return seeds > 1 ? fmt::format(" Each number is a mean over {} seeds.", seeds) : "";
}

}  // namespace kolo::train
