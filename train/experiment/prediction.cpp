#include "train/experiment/prediction.h"

#include <algorithm>
#include <chrono>

#include "transports/decorators/shape.h"

namespace kolo::train {
namespace {

double part(const RankRecord& rank, Part which) {
  return rank.parts[static_cast<std::size_t>(which)];
}

double compute_seconds(const RankRecord& rank) {
  return rank.step_seconds - part(rank, Part::exposed);
}

double bytes_of(const RankRecord& rank) {
  return std::max(rank.formula_sent, rank.formula_received);
}

// The larger share of the bytes: of the busiest rank, in the worker's last bucket.
double exposed_seconds(const RankRecord& worker, double bytes, const Arm& arm,
                       const Network& network) {
  const double hops = arm.is_served() ? worker.last_hops : worker.hops;
  const double all = exchange_seconds(network, bytes, hops);
  if (arm.sync == Sync::naive || arm.sync == Sync::flat) return all;
  const double own = bytes_of(worker);
  const double last_bytes = own > 0 ? bytes * worker.last_bytes / own : 0;
  const double last = exchange_seconds(network, last_bytes, worker.last_hops);
  double hiding = part(worker, Part::backward);
  if (arm.sync == Sync::prioritized) hiding += part(worker, Part::forward);
  return std::max(last, worker.first_full + all - hiding);
}

bool waits_for_all(const Consistency& rule) {
  return rule.kind == Consistency::Kind::kSynchronous || rule.kind == Consistency::Kind::kBackup ||
         (rule.kind == Consistency::Kind::kBounded && rule.bound == 0);
}

}  // namespace

std::optional<Network> network_of(std::string_view shape) {
  if (shape.empty()) return std::nullopt;
  const Shape parsed = parse_shape(shape);
  if (!parsed.all.is_shaped || parsed.is_between_hosts_only || !parsed.overrides.empty())
    return std::nullopt;
  const std::chrono::duration<double> latency = parsed.all.delay + parsed.all.jitter / 2;
  return Network{static_cast<double>(parsed.all.bytes_per_second), latency.count()};
}

double exchange_seconds(const Network& network, double bytes, double hops) {
  const double on_wire = network.bytes_per_second > 0 ? bytes / network.bytes_per_second : 0;
  return on_wire + hops * network.latency_seconds;
}

PredictedIteration predict(const RunRecord& run, const Arm& arm, const Network& network) {
  double busiest = 0;
  for (const RankRecord& rank : run.ranks) busiest = std::max(busiest, bytes_of(rank));
  const bool is_synchronous = waits_for_all(arm.rule);
  const double served = exchange_seconds(network, busiest, 0);
  double longest = 0, sum = 0, compute = 0;
  for (const RankRecord& rank : run.ranks) {
    if (!rank.is_worker) continue;
    const double bytes = is_synchronous ? busiest : bytes_of(rank);
    double seconds = compute_seconds(rank);
    compute += seconds;
    if (busiest > 0) seconds += exposed_seconds(rank, bytes, arm, network);
    longest = std::max(longest, seconds);
    sum += std::max(seconds, served);
  }
  PredictedIteration predicted;
  predicted.seconds = is_synchronous ? longest : sum / run.workers;
  predicted.exposed = predicted.seconds - compute / run.workers;
  return predicted;
}

}  // namespace kolo::train
