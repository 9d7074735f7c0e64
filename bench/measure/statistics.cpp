#include "bench/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kolo::bench {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
}

Quantiles quantiles(const std::vector<double>& values) {
  return {quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9),
          quantile(values, 0.99)};
}

double average(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double bus_factor(Collective collective, int ranks, int servers) {
  const double n = ranks;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kReduceScatter:
    case Collective::kAllGather:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllToAll:
      return (n - 1) / n;
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kScan:
    case Collective::kExclusiveScan:
    case Collective::kMessage:
    case Collective::kBarrier:
      return 1;
    case Collective::kPushPull:
      // Each worker pushes all data; each server answers every worker with its share.
      return servers == 0 ? 2 * (n - 1) / n : std::max(1.0, (n - servers) / servers);
    case Collective::kPush:
    case Collective::kPull:
      return servers == 0 ? (n - 1) / n : std::max(1.0, (n - servers) / servers);
  }
  return 1;
}

double gigabytes_per_second(std::size_t bytes, double microseconds) {
  return microseconds > 0 ? static_cast<double>(bytes) / microseconds / 1e3 : 0;
}

}  // namespace kolo::bench
