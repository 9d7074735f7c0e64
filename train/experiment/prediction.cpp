#include "train/experiment/prediction.h"

#include <algorithm>
#include <bit>
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
double exposed_seconds(const RankRecord& worker, double bytes, const Arm& arm, int micro_batches,
                       const Network& network) {
  const double hops = arm.is_served() ? worker.last_hops : worker.hops;
  const double all = exchange_seconds(network, bytes, hops);
  const double after = arm.update_at == UpdateAt::shard ? all / 2 : 0;  // gathering parameters
  const bool is_after_backward = arm.sync == Sync::naive || arm.sync == Sync::flat;
  if (is_after_backward || arm.local_steps > 0) return all;
  const double own = bytes_of(worker);
  const double last_bytes = own > 0 ? bytes * worker.last_bytes / own : 0;
  const double last = exchange_seconds(network, last_bytes, worker.last_hops);
  double hiding = part(worker, Part::backward);
  if (arm.sync == Sync::prioritized) hiding += part(worker, Part::forward);
  return after + std::max(last, worker.first_full + all - after - hiding / micro_batches);
}

bool is_around_one_rank(const Arm& arm) { return arm.strategy == "dataparallel"; }

// The bytes that bound an exchange: those of the busiest rank.
double most_bytes(const RunRecord& run, const Arm& arm) {
  if (is_around_one_rank(arm)) return run.ranks.front().formula_received;
  double most = 0;
  for (const RankRecord& rank : run.ranks) most = std::max(most, bytes_of(rank));
  return most;
}

// Communication before forward: of dataparallel, down a tree and to each rank.
double seconds_before_forward(const RunRecord& run, const Arm& arm, const Network& network) {
  if (!is_around_one_rank(arm) || run.workers == 1) return 0;
  const int hops = std::bit_width(static_cast<unsigned>(run.workers - 1)) + 1;
  return exchange_seconds(network, run.ranks.front().formula_sent, hops);
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
  const double busiest = most_bytes(run, arm);
  const bool is_synchronous = waits_for_all(arm.rule);
  const double served = exchange_seconds(network, busiest, 0);
  double longest = 0, sum = 0, compute = 0;
  for (const RankRecord& rank : run.ranks) {
    if (!rank.is_worker) continue;
    const double bytes = is_synchronous ? busiest : bytes_of(rank);
    double seconds = compute_seconds(rank);
    compute += seconds;
    if (busiest > 0) seconds += exposed_seconds(rank, bytes, arm, run.micro_batches, network);
    seconds += seconds_before_forward(run, arm, network);
    longest = std::max(longest, seconds);
    sum += std::max(seconds, served);
  }
  PredictedIteration predicted;
  predicted.seconds = is_synchronous ? longest : sum / run.workers;
  predicted.exposed = predicted.seconds - compute / run.workers;
  return predicted;
}

}  // namespace kolo::train
