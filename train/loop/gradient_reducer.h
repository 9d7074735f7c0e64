// Sends gradients while backward still runs.
//
// Backward reports each parameter whose gradient is final; when a bucket has all of its own, its
// exchange starts, and travels while earlier layers compute. After backward, the reducer waits for
// the buckets in order and updates the parameters of each as soon as it is there, while later ones
// still travel.
//
// What the training thread spends on communication is *exposed*: starting exchanges, helping them
// along inside backward, and waiting for them afterwards. The rest of the time between the first
// start and the last arrival is hidden.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/work.h"
#include "tensor/arena.h"
#include "train/loop/buckets.h"
#include "train/strategies/strategy.h"

namespace kolo::train {

// Of one iteration, in seconds and bytes.
struct ExchangeRecord {
  double in_backward = 0;  // exposed: on the training thread, inside backward
  double waiting = 0;      // exposed: on the training thread, after backward
  double in_flight = 0;    // from the start of the first bucket to the arrival of the last
  double optimizer = 0;    // on the training thread, applying updates
  Traffic moved;           // as the transport counted it
  Traffic formula;         // as the strategy promises
};

class GradientReducer {
 public:
  // All are borrowed. `helps_in_backward`: move communication along at every gradient, which is
  // wanted unless a progress thread does.
  GradientReducer(Communicator& communicator, Strategy& strategy,
                  const tensor::Parameters& parameters, std::vector<Bucket> buckets,
                  bool helps_in_backward);

  void begin(float learning_rate);
  // The gradient hook. Throws std::logic_error for a parameter out of the arena's order.
  void gradient_ready(tensor::ParameterId id);
  // For servers, and for workers without a sample in this iteration: all gradients are as they
  // are.
  void all_ready();
  // So far in this iteration: what the hooks took out of backward's time.
  double seconds_in_backward() const { return record_.in_backward; }
  // Returns when all parameters are up to date.
  ExchangeRecord finish();

 private:
  void launch();

  Communicator& communicator_;
  Strategy& strategy_;
  std::vector<Bucket> buckets_;
  std::vector<int> position_;  // of a parameter in the arena's order
  bool helps_in_backward_;
  std::vector<Work> works_;  // of the buckets that have been started
  int ready_ = 0;            // parameters whose gradients are final
  Clock::time_point first_start_;
  CommunicatorStatistics before_;
  ExchangeRecord record_;
};

}  // namespace kolo::train
