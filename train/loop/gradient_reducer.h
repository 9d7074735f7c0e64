// Gradient reducer: exchanges gradients while backward still runs.
//
// Backward reports each parameter whose gradient is final. When all gradients of a bucket are
// final, its exchange starts, and runs while earlier layers compute. After backward, the reducer
// waits for the buckets in order. It updates the parameters of each bucket when its exchange is
// done, while later buckets are still in transfer.
//
// With Sync::naive and Sync::flat no exchange starts before the end of backward, and naive waits
// for each bucket before it starts the next.
//
// *Exposed* communication is the time that the training thread spends on it: starting exchanges,
// making progress inside backward, and waiting afterwards. A bucket is *in flight* from its start
// to its completion. The time in which any bucket is in flight, less the exposed time, is hidden.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/work.h"
#include "tensor/arena.h"
#include "train/loop/buckets.h"
#include "train/strategies/strategy.h"

namespace kolo::train {

// Measurements of one iteration, in seconds and bytes.
struct ExchangeRecord {
  double in_backward = 0;  // exposed: on the training thread, inside backward
  double waiting = 0;      // exposed: on the training thread, after backward
  double in_flight = 0;    // any bucket was in flight; 0 if this rank moved no bytes
  double optimizer = 0;    // on the training thread, applying updates
  Traffic moved;           // as the transport counted it
  Traffic formula;         // according to the strategy's formula
};

class GradientReducer {
 public:
  // All references are borrowed. `helps_in_backward`: make progress at every gradient; needed
  // unless a progress thread does it.
  GradientReducer(Communicator& communicator, Strategy& strategy,
                  const tensor::Parameters& parameters, std::vector<Bucket> buckets,
                  bool helps_in_backward, Sync sync = Sync::bucketed);

  void begin(float learning_rate);
  // The gradient hook. Throws std::logic_error if a parameter is not the next in arena order;
  // std::runtime_error with rank, iteration and parameter if an element of its gradient is infinite
  // or not a number.
  void gradient_ready(tensor::ParameterId id);
  // Marks all gradients as final. For servers, and for workers without samples in this iteration.
  void all_ready();
  // Seconds spent in the hooks, inside backward, so far in this iteration.
  double seconds_in_backward() const { return record_.in_backward; }
  // Returns when all parameters are up to date.
  ExchangeRecord finish();

 private:
  // Time in flight of one bucket. Its end is set by the thread that completes the exchange.
  struct Flight {
    Clock::time_point start;
    std::atomic<Clock::rep> end{0};  // 0: not known yet
  };

  void launch();
  void start_next();
  void require_finite(tensor::ParameterId id) const;
  // Waits for bucket `i`, then applies it.
  void complete(std::size_t i);
  double seconds_in_flight() const;

  Communicator& communicator_;
  Strategy& strategy_;
  const tensor::Parameters& parameters_;
  std::vector<Bucket> buckets_;
  std::vector<int> position_;  // position of each parameter in arena order
  bool helps_in_backward_;
  Sync sync_;
  std::int64_t iteration_ = 0;  // 1, 2, ...
  std::vector<Work> works_;     // one per started bucket
  std::shared_ptr<std::vector<Flight>>
      flights_;    // one per bucket; also held by exchanges in flight
  int ready_ = 0;  // number of parameters whose gradients are final
  CommunicatorStatistics before_;
  ExchangeRecord record_;
};

}  // namespace kolo::train
