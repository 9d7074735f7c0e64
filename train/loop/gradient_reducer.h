// Gradient reducer: exchanges gradients while backward still runs.
//
// Backward reports each parameter whose gradient is final. When all gradients of a bucket are
// final, its exchange starts, and runs while earlier layers compute. After backward, the reducer
// waits for the buckets in order. It updates the parameters of each bucket when its exchange is
// done, while later buckets are still in transfer.
//
// *Exposed* communication is the time that the training thread spends on it: starting exchanges,
// making progress inside backward, and waiting afterwards. The rest of the time between the first
// start and the last completion is hidden.
#pragma once

#include <cstdint>
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
  double in_flight = 0;    // from the start of the first bucket to the end of the last
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
                  bool helps_in_backward);

  void begin(float learning_rate);
  // The gradient hook. Throws std::logic_error if a parameter is not the next in arena order.
  void gradient_ready(tensor::ParameterId id);
  // Marks all gradients as final. For servers, and for workers without samples in this iteration.
  void all_ready();
  // Seconds spent in the hooks, inside backward, so far in this iteration.
  double seconds_in_backward() const { return record_.in_backward; }
  // Returns when all parameters are up to date.
  ExchangeRecord finish();

 private:
  void launch();

  Communicator& communicator_;
  Strategy& strategy_;
  std::vector<Bucket> buckets_;
  std::vector<int> position_;  // position of each parameter in arena order
  bool helps_in_backward_;
  std::vector<Work> works_;  // one per started bucket
  int ready_ = 0;            // number of parameters whose gradients are final
  Clock::time_point first_start_;
  CommunicatorStatistics before_;
  ExchangeRecord record_;
};

}  // namespace kolo::train
