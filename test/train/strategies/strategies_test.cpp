// All strategies, with ranks as threads: n workers get the result of one worker with the same
// global batches, and move the bytes of the formula.
#include "train/strategies/strategy.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/train/strategies/tiny_training.h"
#include "train/loop/bucket_reducer.h"
#include "train/loop/hash.h"
#include "train/optimizers/sgd.h"

namespace {

using namespace kolo;
using namespace kolo::train;
using namespace kolo::test;

Result train_with(const std::string& arm, int workers, bool helps_in_backward = true,
                  Reproducibility reproducibility = Reproducibility::kFast,
                  const OptimizerSettings& optimizer = kSgd) {
  return run_training({arm, workers, helps_in_backward, reproducibility, optimizer});
}

const std::vector<std::string> kArms{"ring",
                                     "ps",
                                     "ps:sharded",
                                     "ps:everywhere",
                                     "ps:servers=3",
                                     "ps:split",
                                     "ps:split:servers=2",
                                     "ps:split:optimizer=server",
                                     "ps:optimizer=server",
                                     "ps:sharded:optimizer=server",
                                     "ps:everywhere:optimizer=server",
                                     "ring:sync=naive",
                                     "ring:sync=flat",
                                     "ring:sync=overlap",
                                     "ring:sync=prioritized",
                                     "ring:sync=fusion",
                                     "tree",
                                     "tree:sync=flat",
                                     "hierarchical",
                                     "auto",
                                     "sharded",
                                     "dataparallel"};

}  // namespace

TEST_CASE(
    "n workers get the result of one worker with every strategy, also with uneven and empty "
    "shares") {
  const Result alone = train_with("ring", 1);
  REQUIRE(alone.buckets > 2);
  for (const std::string& arm : kArms) {
    for (const int workers : {1, 2, 3, 4}) {
      INFO(arm << " with " << workers << " workers");
      CHECK(furthest(alone.values, train_with(arm, workers).values) < 2e-5);
    }
  }
}

TEST_CASE("two workers get the same bits with every strategy") {
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::adamw, OptimizerKind::lars}) {
    const auto train = [&](const std::string& arm) {
      return train_with(arm, 2, true, Reproducibility::kFast, {.kind = kind}).values;
    };
    const std::vector<float> ring = train("ring");
    for (const std::string& arm : kArms) {
      const bool has_parts = arm == "sharded" || arm.ends_with("optimizer=server");
      if (needs_whole_layers(kind) && has_parts) continue;
      INFO(arm << ", " << name_of(kind));
      CHECK(train(arm) == ring);
    }
  }
}

TEST_CASE("progress inside backward does not change the result") {
  CHECK(train_with("ring", 3, true).values == train_with("ring", 3, false).values);
}

TEST_CASE("the optimizer at the server and at the worker give the same bits") {
  for (const std::string arm : {"ps", "ps:sharded", "ps:everywhere", "ps:split"}) {
    INFO(arm);
    CHECK(train_with(arm, 3).values == train_with(arm + ":optimizer=server", 3).values);
  }
}

TEST_CASE("sharded divides the optimizer's state among the workers, a ring repeats it") {
  const std::size_t once = train_with("ring", 1).state;
  REQUIRE(once > 0);
  for (const int workers : {2, 3, 4}) {
    CHECK(train_with("sharded", workers).state == once);
    CHECK(train_with("ring", workers).state == once * static_cast<std::size_t>(workers));
  }
}

namespace {

// Gradients of one worker's share, divided by the size of the global batch.
void find_gradients(tensor::Network& network, OrderRange share, std::int64_t global) {
  std::ranges::fill(network.parameters().gradients(), 0.0f);
  if (share.count == 0) return;
  const test::Samples samples = test::make_samples(share);
  network.forward({samples.images, samples.labels, static_cast<double>(global)},
                  tensor::Mode::training);
  network.backward();
}

// One rank that accumulates the shares of all workers, in the order of the ranks.
std::vector<float> train_by_accumulation(int workers) {
  tensor::Network network = test::make_tiny_network(3);
  const std::span<float> values = network.parameters().values();
  const std::span<float> gradients = network.parameters().gradients();
  Sgd sgd(kSgd, 0, static_cast<std::int64_t>(values.size()));
  std::int64_t begin = 0;
  for (const std::int64_t global : kGlobalBatches) {
    std::vector<float> sum;
    for (int worker = 0; worker < workers; ++worker) {
      find_gradients(network, share_of({begin, global}, worker, workers), global);
      if (worker == 0) {
        sum.assign(gradients.begin(), gradients.end());
      } else {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[i];
      }
    }
    sgd.apply(0, values, sum, {0.05f});
    begin += global;
  }
  return {values.begin(), values.end()};
}

// Workers that apply their own gradients, with an average after every `steps` iterations.
std::vector<float> train_by_local_steps(int workers, std::size_t steps) {
  tensor::Network network = test::make_tiny_network(3);
  const std::span<float> values = network.parameters().values();
  const std::span<float> gradients = network.parameters().gradients();
  const auto n = static_cast<std::size_t>(workers);
  std::vector<std::vector<float>> replicas(n, {values.begin(), values.end()});
  std::vector<Sgd> optimizers(n, Sgd(kSgd, 0, static_cast<std::int64_t>(values.size())));
  std::int64_t begin = 0;
  for (std::size_t iteration = 0; iteration < kGlobalBatches.size(); ++iteration) {
    const std::int64_t global = kGlobalBatches[iteration];
    std::vector<double> sum(values.size());
    for (std::size_t worker = 0; worker < n; ++worker) {
      std::ranges::copy(replicas[worker], values.begin());
      find_gradients(network, share_of({begin, global}, static_cast<int>(worker), workers), global);
      for (float& gradient : gradients) gradient *= static_cast<float>(workers);
      optimizers[worker].apply(0, replicas[worker], gradients, {0.05f});
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += double{replicas[worker][i]};
    }
    begin += global;
    if ((iteration + 1) % steps != 0 && iteration + 1 < kGlobalBatches.size()) continue;
    for (std::vector<float>& replica : replicas) {
      for (std::size_t i = 0; i < sum.size(); ++i)
        replica[i] = static_cast<float>(sum[i] / workers);
    }
  }
  return replicas[0];
}

}  // namespace

TEST_CASE("n workers get the bits of one rank that accumulates their shares in rank order") {
  for (const int workers : {1, 2, 3, 4}) {
    const std::vector<float> accumulated = train_by_accumulation(workers);
    for (const std::string& arm : kArms) {
      INFO(arm << " with " << workers << " workers");
      CHECK(train_with(arm, workers, true, Reproducibility::kInvariant).values == accumulated);
    }
  }
}

TEST_CASE("local-sgd averages the parameters every H iterations, and equals SGD for H = 1") {
  const Result alone = train_with("ring", 1);
  for (const int workers : {1, 2, 3}) {
    for (const std::size_t steps : {1, 2, 4, 100}) {
      INFO(workers << " workers, " << steps << " steps");
      const Result local = train_with("local-sgd:" + std::to_string(steps), workers);
      CHECK(furthest(local.values, train_by_local_steps(workers, steps)) < 2e-6);
      CHECK((furthest(local.values, alone.values) < 2e-5) == (steps == 1 || workers == 1));
    }
  }
}

namespace {

// Counts the exchanges that have been started, and does not communicate.
class CountingStrategy final : public Strategy {
 public:
  explicit CountingStrategy(Communicator& communicator) : communicator_(communicator) {}
  Work exchange(std::size_t) override {
    ++started;
    started_before_applied = std::max(started_before_applied, started - applied);
    return communicator_.barrier_async();
  }
  void apply(std::size_t) override { ++applied; }
  Traffic traffic(std::int64_t) const override { return {}; }

  int started = 0;
  int applied = 0;
  int started_before_applied = 0;  // at the same time

 private:
  Communicator& communicator_;
};

struct Ladder {
  Sync sync;
  int during_backward;  // exchanges that start there
  int at_once;
};

}  // namespace

TEST_CASE("naive and flat start after backward, overlap and buckets during it") {
  test::run_ranks(1, "inproc", [](Communicator& communicator) {
    tensor::Network network = test::make_tiny_network(3);
    const int parameters = static_cast<int>(network.parameters().list().size());
    for (const Ladder& rung : {Ladder{Sync::naive, 0, 1}, Ladder{Sync::flat, 0, 1},
                               Ladder{Sync::overlap, parameters, parameters}}) {
      Arm arm;
      arm.sync = rung.sync;
      const auto buckets = plan_buckets(network.parameters(), sizes_of(arm));
      CountingStrategy strategy(communicator);
      BucketReducer reducer(communicator, strategy, network.parameters(), buckets, true, rung.sync);
      reducer.begin({0.1f});
      run_backward(network, reducer, {0, 4}, 4);
      expect(strategy.started == rung.during_backward, "exchanges that start during backward");
      const ExchangeRecord record = reducer.finish();
      expect(strategy.applied == static_cast<int>(buckets.size()), "every bucket is applied");
      expect(strategy.started_before_applied == rung.at_once, "exchanges in flight at once");
      expect(record.in_flight == 0, "a rank that sends nothing has nothing in flight");
    }
  });
}

TEST_CASE("the time in flight is within the iteration, and covers the wait after backward") {
  test::run_ranks(2, "inproc", [](Communicator& communicator) {
    tensor::Network network = test::make_tiny_network(3);
    tensor::Parameters& parameters = network.parameters();
    const auto buckets = plan_buckets(parameters, kSmallBuckets);
    const auto strategy =
        make_strategy(parse_arms("ring", {}).front(), {communicator, parameters, 2, {}, buckets});
    BucketReducer reducer(communicator, *strategy, parameters, buckets, true);
    const auto start = Clock::now();
    reducer.begin({0.1f});
    run_backward(network, reducer, {communicator.rank() * 2, 2}, 4);
    const ExchangeRecord record = reducer.finish();
    const double wall = std::chrono::duration<double>(Clock::now() - start).count();
    expect(record.in_flight > 0, "two ranks send");
    expect(record.in_flight <= wall, "the time in flight is part of the iteration");
  });
}

namespace {

// A ring that notes the order of its exchanges.
class NotingStrategy final : public Strategy {
 public:
  explicit NotingStrategy(std::unique_ptr<Strategy> ring) : ring_(std::move(ring)) {}
  void begin_iteration(const UpdateStep& step) override { ring_->begin_iteration(step); }
  Work exchange(std::size_t i) override {
    order.push_back(i);
    return ring_->exchange(i);
  }
  Work exchange_buffer(std::span<float> gradients) override {
    ++fused;
    return ring_->exchange_buffer(gradients);
  }
  void apply(std::size_t i) override { ring_->apply(i); }
  Traffic traffic(std::int64_t elements) const override { return ring_->traffic(elements); }

  std::vector<std::size_t> order;
  int fused = 0;  // exchanges of a buffer

 private:
  std::unique_ptr<Strategy> ring_;
};

// The order of exchanges on each rank, where gradients become final one by one on rank `slow`, and
// all at once on the others.
std::vector<std::vector<std::size_t>> orders_with_slow(int slow) {
  constexpr int kRanks = 3;
  std::vector<std::vector<std::size_t>> orders(kRanks);
  test::run_ranks(kRanks, "inproc", [&](Communicator& communicator) {
    tensor::Network network = test::make_tiny_network(3);
    tensor::Parameters& parameters = network.parameters();
    const auto buckets = plan_buckets(parameters, kOneParameterEach);
    Arm arm;
    arm.sync = Sync::prioritized;
    const StrategyContext context{communicator, parameters, kRanks, {}, buckets};
    NotingStrategy strategy(make_strategy(arm, context));
    const auto reducer = make_reducer(arm, strategy, context);
    for (int iteration = 0; iteration < 3; ++iteration) {
      reducer->begin({0.1f});
      if (communicator.rank() == slow) {
        reducer->settle();
        for (const tensor::ParameterId id : parameters.arena_order()) reducer->gradient_ready(id);
      } else {
        reducer->all_ready();
      }
      reducer->finish(iteration == 2);
    }
    orders[static_cast<std::size_t>(communicator.rank())] = strategy.order;
  });
  return orders;
}

}  // namespace

TEST_CASE("priorities: all ranks exchange in the order of rank 0, the first layers first") {
  const auto orders = orders_with_slow(1);
  const std::size_t parameters = orders[0].size() / 3;
  for (const auto& order : orders) CHECK(order == orders[0]);
  for (std::size_t i = 0; i < parameters; ++i)  // all were full on rank 0: the last bucket first
    CHECK(orders[0][i] == parameters - 1 - i);
}

TEST_CASE("priorities: ranks start together where gradients become final later on rank 0") {
  const auto orders = orders_with_slow(0);
  for (const auto& order : orders) CHECK(order == orders[0]);
  CHECK(orders[0].front() == 0);  // the only full one at that time
}

TEST_CASE("fusion: gradients that are final on all ranks are reduced together") {
  test::run_ranks(3, "inproc", [](Communicator& communicator) {
    tensor::Network network = test::make_tiny_network(3);
    tensor::Parameters& parameters = network.parameters();
    const auto buckets = plan_buckets(parameters, kOneParameterEach);
    Arm arm;
    arm.sync = Sync::fusion;
    const StrategyContext context{communicator, parameters, 3, {}, buckets};
    NotingStrategy strategy(make_strategy(arm, context));
    const auto reducer = make_reducer(arm, strategy, context);
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (float& gradient : parameters.gradients()) gradient = 1;
      reducer->begin({0.1f});
      if (communicator.rank() == 1) {  // there gradients become final one by one
        for (const tensor::ParameterId id : parameters.arena_order()) reducer->gradient_ready(id);
      } else {
        reducer->all_ready();
      }
      reducer->finish();
      for (const float sum : parameters.gradients()) expect(sum == 3, "the sum of three ranks");
    }
    expect(strategy.fused >= 3, "every iteration reduces");
    expect(strategy.fused < 3 * static_cast<int>(buckets.size()), "gradients are fused");
  });
}

TEST_CASE("a gradient that is not finite is reported with rank, iteration and parameter") {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    std::string text;
    test::run_ranks(1, "inproc", [&](Communicator& communicator) {
      tensor::Network network = test::make_tiny_network(3);
      tensor::Parameters& parameters = network.parameters();
      const auto buckets = plan_buckets(parameters, kSmallBuckets);
      CountingStrategy strategy(communicator);
      BucketReducer reducer(communicator, strategy, parameters, buckets, true);
      reducer.begin({0.1f});
      const tensor::ParameterId first = parameters.arena_order().front();
      parameters.gradient(first)[3] = bad;
      try {
        reducer.gradient_ready(first);
      } catch (const std::runtime_error& error) {
        text = error.what();
      }
    });
    CHECK_THAT(text, ContainsSubstring("rank 0: the gradient of fc.") &&
                         ContainsSubstring("not finite at iteration 1"));
  }
}

TEST_CASE("an arm that does not fit the number of ranks is rejected") {
  test::run_ranks(2, "inproc", [](Communicator& communicator) {
    tensor::Network network = test::make_tiny_network(3);
    const Arm arm = parse_arms("ps", {}).front();
    bool is_refused = false;
    try {
      make_strategy(arm, {communicator, network.parameters(), 2, {}, {}});
    } catch (const std::invalid_argument&) {
      is_refused = true;
    }
    expect(is_refused, "two workers and a server are three ranks");
  });
}
