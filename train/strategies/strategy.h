// A strategy: how the gradients of all workers become the same update on each.
//
// All strategies get the same buckets (ranges of the same arenas), the same communicator and the
// same optimizer, and differ in nothing but the collective they call and who applies the optimizer.
// To add one: two files here, a row of the table in strategy.cpp, its words in arm.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/communicator.h"
#include "tensor/arena.h"
#include "train/loop/buckets.h"
#include "train/optimizers/sgd.h"
#include "train/strategies/arm.h"

namespace kolo::train {

// One rank's place in a run; all of it is borrowed and outlives the strategy.
struct StrategyContext {
  Communicator& communicator;
  tensor::Parameters& parameters;
  int workers = 1;  // ranks [0, workers) work; dedicated servers follow
  SgdSettings sgd;
  std::vector<Bucket> buckets;

  bool is_worker() const { return communicator.rank() < workers; }
};

// Payload bytes of one rank.
struct Traffic {
  double sent = 0;
  double received = 0;
};

// One object per rank. One thread at a time; what it hands to the communicator may run on the
// thread that makes progress.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Before the first exchange of an iteration. Gradients are sums over this worker's samples of d
  // loss / d parameter, divided by the size of the global batch: their sum over workers is the
  // gradient of the mean loss.
  virtual void begin_iteration(float learning_rate) { learning_rate_ = learning_rate; }

  // Starts the exchange of bucket `i`, whose gradients are final here; in order, on all ranks,
  // servers too.
  virtual Work exchange(std::size_t i) = 0;

  // When the exchange of bucket `i` is done: brings this worker's parameters up to date. Nothing
  // to do for servers.
  virtual void apply(std::size_t i) = 0;

  // What one exchange of `elements` gradients moves according to the strategy's textbook formula.
  virtual Traffic traffic(std::int64_t elements) const = 0;

 protected:
  float learning_rate_ = 0;
};

// The strategy of an arm. Throws std::invalid_argument where the arm does not fit the
// communicator's size.
std::unique_ptr<Strategy> make_strategy(const Arm& arm, StrategyContext context);

// The textbook formula in words: "2 (n - 1) / n of the gradients, sent and received by each of n
// workers".
std::string formula_of(const Arm& arm);

}  // namespace kolo::train
