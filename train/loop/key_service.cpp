#include "train/loop/key_service.h"

#include <algorithm>

#include "train/loop/seconds.h"

namespace kolo::train {

KeyService::KeyService(Communicator& communicator, TrainingSetup& setup, const Strategy& strategy,
                       const std::vector<Bucket>& buckets, const KeyPlan& plan)
    : communicator_(communicator),
      setup_(setup),
      strategy_(strategy),
      buckets_(buckets),
      plan_(plan),
      updates_(plan.keys.size()) {
  const std::vector<Layer> layers = layers_of(setup.network().parameters());
  for (const Key& key : plan.keys) {
    optimizers_.emplace_back();
    if (key.server != communicator.rank()) continue;
    optimizers_.back() =
        make_optimizer(setup.optimizer_settings(), static_cast<std::int64_t>(key.first),
                       static_cast<std::int64_t>(key.count), layers);
  }
}

IterationRecord KeyService::serve_epoch(std::int64_t first, std::int64_t end) {
  const auto count = static_cast<double>(end - first);
  const Clock::time_point start = Clock::now();
  const CommunicatorStatistics before = communicator_.statistics();
  const KeyServerStatistics served =
      serve_keys(communicator_, plan_, setup_.network().parameters().values(),
                 [this](const KeyUpdate& one) { update(one); },
                 {.consistency = setup_.arm().rule, .first_iteration = first});
  add(served);
  IterationRecord mean;
  mean.wall = seconds_since(start) / count;
  mean.parts[static_cast<std::size_t>(Part::exposed)] = served.idle_seconds / count;
  count_bytes(before, served, count, mean);
  settle_parts(mean);
  return mean;
}

void KeyService::count_bytes(const CommunicatorStatistics& before,
                             const KeyServerStatistics& served, double iterations,
                             IterationRecord& mean) const {
  const Traffic moved = moved_between(before, communicator_.statistics());
  mean.exchange.moved = {moved.sent / iterations, moved.received / iterations};
  const auto here = std::ranges::count(plan_.keys, communicator_.rank(), &Key::server);
  const double expected = static_cast<double>(here) * setup_.options().ranks * iterations;
  // Workers leave out iterations that have ended without them.
  const double share =
      expected > 0 ? static_cast<double>(served.gradients + served.dropped) / expected : 0;
  for (const Bucket& bucket : buckets_) {
    const Traffic formula = strategy_.traffic(bucket.range.count);
    mean.exchange.formula.sent += share * formula.sent;
    mean.exchange.formula.received += share * formula.received;
  }
}

void KeyService::add(const KeyServerStatistics& served) {
  served_.gradients += served.gradients;
  served_.dropped += served.dropped;
  served_.staleness.resize(std::max(served_.staleness.size(), served.staleness.size()));
  for (std::size_t i = 0; i < served.staleness.size(); ++i)
    served_.staleness[i] += served.staleness[i];
}

std::vector<Optimizer*> KeyService::optimizers() {
  std::vector<Optimizer*> held;
  for (const auto& optimizer : optimizers_) {
    if (optimizer) held.push_back(optimizer.get());
  }
  return held;
}

void KeyService::resume_from(std::int64_t iterations) {
  const int per_iteration = applies_each_worker() ? setup_.options().ranks : 1;
  std::ranges::fill(updates_, iterations * per_iteration);
}

// Gradients of single workers are applied, not their sum.
bool KeyService::applies_each_worker() const {
  const Consistency& rule = setup_.arm().rule;
  return rule.kind == Consistency::Kind::kAsynchronous ||
         (rule.kind == Consistency::Kind::kBounded && rule.bound > 0);
}

// Gradients are sums over samples, divided by the size of the global batch. They become means over
// the samples that were received. A gradient of one worker is applied at the learning rate / n, so
// that n of them move the parameters as far as one of all workers.
void KeyService::update(const KeyUpdate& update) {
  const std::int64_t per_epoch = setup_.train_plan().iterations_per_epoch();
  const auto global =
      static_cast<double>(setup_.train_plan().global(update.iteration % per_epoch).count);
  const auto scale = static_cast<float>(global / update.samples);
  if (scale != 1.0f) {
    for (float& gradient : update.gradient) gradient *= scale;
  }
  const float rate = setup_.learning_rate().at(update.iteration) /
                     (applies_each_worker() ? static_cast<float>(setup_.options().ranks) : 1.0f);
  optimizers_[update.key]->apply(static_cast<std::int64_t>(plan_.keys[update.key].first),
                                 update.values, update.gradient, {rate, ++updates_[update.key]});
}

void pull_parameters(Communicator& communicator, TrainingSetup& setup,
                     const std::vector<Bucket>& buckets) {
  ServerPlan plan;
  const int servers = setup.arm().servers;
  for (int server = 0; server < servers; ++server)
    plan.servers.push_back(setup.options().ranks + server);
  const int mine = communicator.rank() - setup.options().ranks;
  // A worker may be an epoch ahead. If another one is silent, its server ends the job.
  const CallOptions patient{.timeout = std::chrono::hours(24)};
  for (const Bucket& bucket : buckets) {
    const auto count = static_cast<std::size_t>(bucket.range.count);
    const std::span<float> values = setup.network().parameters().values().subspan(
        static_cast<std::size_t>(bucket.range.begin), count);
    if (setup.is_worker()) {
      communicator.pull({}, values, plan, patient);
    } else {
      communicator.pull(std::span<const float>(values).subspan(chunk_begin(count, servers, mine),
                                                               chunk_count(count, servers, mine)),
                        {nullptr, count, ElementType::kFloat32}, plan);
    }
  }
}

}  // namespace kolo::train
