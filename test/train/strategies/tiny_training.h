// Training of the tiny network with any strategy, with ranks as threads. Each run also checks that
// the replicas are equal, and that the bytes are those of the formula.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/train/tiny_network.h"
#include "train/loop/gradient_pass.h"
#include "train/loop/gradient_reducer.h"
#include "train/loop/hash.h"
#include "train/strategies/strategy.h"

namespace kolo::test {

using namespace kolo::train;

// Global batches with uneven shares, and some with empty shares.
inline constexpr std::array<std::int64_t, 6> kGlobalBatches{6, 5, 7, 2, 1, 8};
inline constexpr BucketSizes kSmallBuckets{256, 1024};
inline constexpr OptimizerSettings kSgd{.momentum = 0.9f, .weight_decay = 0.01f};

struct Result {
  std::vector<float> values;
  std::size_t buckets = 0;
  std::size_t state = 0;  // numbers that all optimizers together hold
  UpdateStatistics updates;
  double sent = 0;  // by rank 0
};

inline BucketSizes sizes_of(const Arm& arm) {
  if (arm.sync == Sync::flat) return kAllParameters;
  const bool has_buckets = arm.sync == Sync::bucketed || arm.sync == Sync::prioritized;
  return has_buckets ? kSmallBuckets : kOneParameterEach;
}

inline void run_backward(tensor::Network& network, train::GradientReducer& reducer,
                         OrderRange share, std::int64_t global) {
  if (share.count == 0) {
    reducer.all_zero();
    return;
  }
  const Samples samples = make_samples(share);
  network.forward({samples.images, samples.labels, static_cast<double>(global)},
                  tensor::Mode::training, [&](tensor::ParameterId id) { reducer.before_use(id); });
  network.backward([&](tensor::ParameterId id) { reducer.gradient_ready(id); });
}

inline void run_pass(GradientPass& pass, GradientReducer& reducer, OrderRange share,
                     std::int64_t global) {
  if (share.count == 0) return reducer.all_zero();
  const Samples samples = make_samples(share);
  Minibatch batch;
  batch.global_count = global;
  batch.samples.resize(samples.labels.size());
  batch.images = samples.images;
  batch.labels = samples.labels;
  pass.run(batch, [](double) {});
}

inline void add(Traffic& sum, const Traffic& more) {
  sum.sent += more.sent;
  sum.received += more.received;
}

inline void expect_bytes(const Traffic& moved, const Traffic& formula, std::size_t exchanges,
                         int workers) {
  const double allowed = 8.0 * static_cast<double>(exchanges) * workers;
  expect(std::abs(moved.sent - formula.sent) <= allowed, "bytes sent are those of the formula");
  expect(std::abs(moved.received - formula.received) <= allowed,
         "bytes received are those of the formula");
}

struct Training {
  std::string arm = "ring";
  int workers = 1;
  bool helps_in_backward = true;
  Reproducibility reproducibility = Reproducibility::kFast;
  OptimizerSettings optimizer = kSgd;
  GradientOptions gradients = {};
  std::int64_t micro_batch = 0;
  ExchangeHook hook = {};
};

inline Result run_training(const Training& how) {
  CommunicatorOptions options;
  options.reproducibility = how.reproducibility;
  const bool is_invariant = how.reproducibility == Reproducibility::kInvariant;
  const int workers = how.workers;
  const Arm arm = parse_arms(how.arm, {}).front();
  Result result;
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(workers));
  std::mutex mutex;
  const auto run = [&](Communicator& communicator) {
    tensor::Network network = make_tiny_network(3);
    tensor::Parameters& parameters = network.parameters();
    const auto buckets = plan_buckets(parameters, sizes_of(arm));
    const StrategyContext context{communicator, parameters,   workers,       how.optimizer,
                                  buckets,      is_invariant, how.gradients, how.hook};
    const auto strategy = make_strategy(arm, context);
    const auto reducer = make_reducer(arm, *strategy, context, how.helps_in_backward);
    GradientPass pass(network, *reducer, {.micro_batch = how.micro_batch});
    std::int64_t begin = 0;
    Traffic moved, formula;
    for (std::size_t i = 0; i < kGlobalBatches.size(); ++i) {
      const std::int64_t global = kGlobalBatches[i];
      reducer->begin({0.05f, static_cast<std::int64_t>(i) + 1});
      if (communicator.rank() < workers) {
        run_pass(pass, *reducer, share_of({begin, global}, communicator.rank(), workers), global);
      } else {
        reducer->all_ready();
      }
      const ExchangeRecord record = reducer->finish(i + 1 == kGlobalBatches.size());
      // The next iteration ends some exchanges of these arms.
      if (arm.sync != Sync::prioritized && arm.strategy != "dataparallel")
        expect_bytes(record.moved, record.formula, buckets.size(), workers);
      add(moved, record.moved);
      add(formula, record.formula);
      begin += global;
    }
    expect_bytes(moved, formula, kGlobalBatches.size() * buckets.size(), workers);
    const std::scoped_lock lock(mutex);
    if (communicator.rank() < workers)
      hashes[static_cast<std::size_t>(communicator.rank())] = hash_of(parameters.values());
    for (Optimizer* const one : strategy->optimizers()) {
      for (const OptimizerState& state : one->state()) result.state += state.values.size();
    }
    if (communicator.rank() == 0) {
      result.values.assign(parameters.values().begin(), parameters.values().end());
      result.buckets = buckets.size();
      if (strategy->gradient_update() != nullptr)
        result.updates = strategy->gradient_update()->statistics();
      result.sent = moved.sent;
    }
  };
  run_ranks(workers + arm.servers, "inproc", run, options);
  for (const std::uint64_t hash : hashes) CHECK(hash == hashes[0]);
  return result;
}

inline double furthest(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double distance = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    distance = std::max(distance, std::abs(double{a[i]} - double{b[i]}));
  return distance;
}

}  // namespace kolo::test
