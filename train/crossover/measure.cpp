#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "collectives/communicator.h"
#include "train/crossover/crossover.h"
#include "train/loop/gather.h"
#include "train/loop/metrics.h"
#include "train/loop/seconds.h"
#include "train/options.h"

namespace kolo::train {
namespace {

constexpr int kRepetitions = 3;  // after one that does not count

// The exchange of one point, on this rank.
void exchange(Communicator& group, const CrossoverPoint& point, int workers,
              std::span<float> gradients) {
  if (point.arm == "ring") {
    CallOptions call;
    call.algorithm = "ring";
    return group.all_reduce(gradients, ReduceOp::kSum, call);
  }
  ServerPlan plan;
  plan.everywhere = point.servers == 0;
  plan.servers.resize(static_cast<std::size_t>(point.servers));
  std::iota(plan.servers.begin(), plan.servers.end(), workers);
  if (point.arm == "split") plan = balanced_plan(plan.servers, group.size());
  float* const mine = group.rank() < workers ? gradients.data() : nullptr;
  group.push_pull({mine, gradients.size(), ElementType::kFloat32},
                  {mine, gradients.size(), ElementType::kFloat32}, ReduceOp::kSum, plan);
}

// The median over repetitions of the slowest rank's time.
double seconds_of(Communicator& group, const CrossoverPoint& point, int workers,
                  std::span<float> gradients) {
  std::vector<double> slowest;
  for (int i = 0; i <= kRepetitions; ++i) {
    std::ranges::fill(gradients, 1.0f);
    group.barrier();
    const Clock::time_point start = Clock::now();
    exchange(group, point, workers, gradients);
    const double mine = seconds_since(start);
    double most = 0;
    for (const auto& row : gather_rows(group, std::span<const double>(&mine, 1)))
      most = std::max(most, row[0]);
    if (i > 0) slowest.push_back(most);
  }
  return quantile(slowest, 0.5);
}

// Ranks that have no part in a point wait for the others meanwhile.
std::chrono::milliseconds timeout_of(const std::vector<CrossoverPoint>& points) {
  constexpr double kSlower = 10, kLeastSeconds = 60;
  double longest = 0;
  for (const CrossoverPoint& point : points) longest = std::max(longest, point.predicted);
  const double seconds = kLeastSeconds + kSlower * (kRepetitions + 1) * longest;
  return std::chrono::milliseconds(std::llround(1e3 * seconds));
}

}  // namespace

CrossoverResult measure_crossover(const CrossoverOptions& options) {
  CrossoverResult result;
  result.points =
      predict_crossover(options.ranks, static_cast<double>(options.bytes), options.network);
  CommunicatorOptions how;
  how.transport = options.transport;
  how.timeout = timeout_of(result.points);
  Communicator world = Communicator::from_environment(how);
  result.transport = std::string(world.transport());
  std::vector<float> gradients(static_cast<std::size_t>(options.bytes) / sizeof(float));
  for (CrossoverPoint& point : result.points) {
    const bool takes_part = world.rank() < options.ranks + point.servers;
    auto group = world.split(takes_part ? 0 : -1);
    if (group) point.measured = seconds_of(*group, point, options.ranks, gradients);
  }
  world.barrier();  // so that no peer takes this rank's exit for a failure
  return result;
}

}  // namespace kolo::train
