// Strategy: turns the gradients of all workers into the same update on each.
//
// All strategies use the same buckets (ranges of the same arenas), the same communicator and the
// same optimizer. They differ only in the collective, and in the ranks that apply the optimizer. To
// add one: two files here, a row of the table in strategy.cpp, its words in arm.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collectives/communicator.h"
#include "tensor/arena.h"
#include "train/loop/buckets.h"
#include "train/optimizers/optimizer.h"
#include "train/strategies/arm.h"
#include "train/strategies/gradient_update.h"

namespace kolo::train {

// A program's own exchange of a bucket: starts to sum `gradients` (float32, d loss / d parameter)
// over the workers, in place. Called in the same order on every
// worker. `gradients` is valid until the work is done.
using ExchangeHook =
    std::function<Work(Communicator& communicator, std::size_t bucket, std::span<float> gradients)>;

// The data of one rank in a run. Everything is borrowed and must outlive the strategy.
struct StrategyContext {
  Communicator& communicator;
  tensor::Parameters& parameters;
  int workers = 1;  // ranks [0, workers) are workers; dedicated servers follow
  OptimizerSettings optimizer;
  std::vector<Bucket> buckets;
  bool is_invariant = false;  // sums are in the order of ranks (Reproducibility::kInvariant)
  GradientOptions gradients = {};
  // Replaces the exchange in arms of all-reduce, but not in local-sgd or sync=fusion. Empty: the
  // arm's own exchange.
  ExchangeHook hook = {};
  // Pipelines: the ranks of this replica, each with the gradients of its stage; else null.
  Communicator* stages = nullptr;

  bool is_worker() const { return communicator.rank() < workers; }
  std::unique_ptr<Optimizer> make_optimizer(std::int64_t offset, std::int64_t count) const {
    return train::make_optimizer(optimizer, offset, count, layers_of(parameters));
  }
  // The optimizer of the whole arena.
  std::unique_ptr<Optimizer> make_optimizer() const {
    return make_optimizer(0, static_cast<std::int64_t>(parameters.values().size()));
  }
};

// Payload bytes of one rank.
struct Traffic {
  double sent = 0;
  double received = 0;
  Traffic& operator+=(const Traffic& other) {
    sent += other.sent;
    received += other.received;
    return *this;
  }
};
// What the transport counted between two statistics of a communicator.
inline Traffic moved_between(const CommunicatorStatistics& before,
                             const CommunicatorStatistics& after) {
  return {static_cast<double>(after.payload_bytes_sent - before.payload_bytes_sent),
          static_cast<double>(after.payload_bytes_received - before.payload_bytes_received)};
}

// One object per rank. One thread at a time calls it; callbacks that it passes to the communicator
// may run on the progress thread.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Called before the first exchange of an iteration. Gradients are sums over this worker's samples
  // of d loss / d parameter, divided by the size of the global batch. So their sum over workers is
  // the gradient of the mean loss.
  virtual void begin_iteration(const UpdateStep& step) { step_ = step; }

  // Starts the exchange of bucket `i`, whose gradients are final on this rank. Called in order, on
  // all ranks, including servers.
  virtual Work exchange(std::size_t i) = 0;

  // Sums `gradients`, which are no part of the arena, over the workers, in place. Throws
  // std::logic_error if the strategy has servers. The sums are ready after receive_buffer().
  virtual Work exchange_buffer(std::span<float> gradients);
  virtual void receive_buffer(std::span<float>) {}

  // Called when the exchange of bucket `i` is done, before apply().
  virtual void receive(std::size_t) {}

  // Called after receive() of all buckets if GradientUpdate::needs_all_sums(). Collective. False:
  // the updates of this iteration are skipped.
  virtual bool prepare_update() { return true; }

  // Updates this worker's parameters of bucket `i`. Does nothing on servers.
  virtual void apply(std::size_t i) = 0;

  // Called after the last apply() of an iteration: returns when all parameters are up to date.
  virtual void end_iteration() {}

  // The bytes of one exchange of `elements` gradients, by the strategy's textbook formula.
  virtual Traffic traffic(std::int64_t elements) const = 0;
  // The part of traffic() that is not sent if the update is skipped.
  virtual Traffic traffic_of_update(std::int64_t) const { return {}; }

  // Messages in sequence in one exchange of `elements` gradients: each costs one latency of the
  // network. A push and a pull.
  virtual int hops(std::int64_t) const { return 2; }

  // The optimizers of this rank, for checkpoints; none on ranks that apply no updates.
  virtual std::vector<Optimizer*> optimizers() { return {}; }

  // Gradients of this worker that wait to be sent, laid out as the arena; empty: it sends all. For
  // checkpoints.
  virtual std::span<float> unsent() { return {}; }

  // The object that converts, checks and clips the gradients. Null: they are sent in float32, and
  // each bucket is applied as soon as its sum has arrived.
  virtual GradientUpdate* gradient_update() { return nullptr; }

 protected:
  UpdateStep step_;
};

// Makes the strategy of an arm. Throws std::invalid_argument if the arm does not fit the
// communicator's size.
std::unique_ptr<Strategy> make_strategy(const Arm& arm, StrategyContext context);

// The textbook formula in words: "2 (n - 1) / n of the gradients, sent and received by each of n
// workers". `is_in_rank_order`: sums are in the order of ranks, of more than two workers.
std::string formula_of(const Arm& arm, bool is_in_rank_order);

}  // namespace kolo::train
