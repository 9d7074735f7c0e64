#include "train/crossover/crossover.h"

#include <algorithm>

namespace kolo::train {

std::vector<CrossoverPoint> predict_crossover(int ranks, double bytes, const Network& network) {
  const double n = ranks;
  const double around = 2 * (n - 1) / n * bytes;
  std::vector<CrossoverPoint> points;
  points.push_back({"ring", 0, exchange_seconds(network, around, 2 * (n - 1))});
  points.push_back({"everywhere", 0, exchange_seconds(network, around, 2)});
  for (int k = 1; k <= ranks; ++k)
    points.push_back({"ps", k, exchange_seconds(network, std::max(1.0, n / k) * bytes, 2)});
  for (int k = 1; k <= ranks && ranks >= 3; ++k) {
    const double split = 2 * n * (n - 1) / (n * n + k * n - 2 * k) * bytes;
    points.push_back({"split", k, exchange_seconds(network, split, 2)});
  }
  return points;
}

std::optional<int> first_better_servers(const std::vector<CrossoverPoint>& points, TimeBy by) {
  const auto seconds = [&](const CrossoverPoint& point) {
    return by == TimeBy::prediction ? point.predicted : point.measured.value_or(0);
  };
  const double ring = seconds(*std::ranges::find(points, "ring", &CrossoverPoint::arm));
  std::optional<int> first;
  for (const CrossoverPoint& point : points) {  // in the order of servers
    if (point.arm != "ps") continue;
    if (seconds(point) >= ring)
      first.reset();
    else if (!first)
      first = point.servers;
  }
  return first;
}

}  // namespace kolo::train
