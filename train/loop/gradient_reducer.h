// Gradient reducer: exchanges gradients while backward still runs, and applies the updates.
//
// Backward reports each parameter whose gradient is final. The reducers differ in what they
// exchange together and when: see bucket_reducer.h and priority_reducer.h.
//
// *Exposed* communication is the time that the training thread spends on it: starting exchanges,
// making progress inside forward and backward, and waiting. A bucket is *in flight* from its start
// to its completion. The time in which any bucket is in flight, less the exposed time, is hidden.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/work.h"
#include "tensor/arena.h"
#include "train/loop/buckets.h"
#include "train/loop/timeline.h"
#include "train/strategies/strategy.h"

namespace kolo::train {

// Measurements of one iteration, in seconds and bytes.
struct ExchangeRecord {
  double in_forward = 0;   // exposed: on the training thread, inside forward
  double in_backward = 0;  // exposed: on the training thread, inside backward
  double waiting = 0;      // exposed: on the training thread, outside forward and backward
  double in_flight = 0;    // any bucket was in flight; 0 if this rank moved no bytes
  double optimizer = 0;    // on the training thread, applying updates
  Traffic moved;           // as the transport counted it
  Traffic formula;         // according to the strategy's formula
  // For the prediction (experiment/prediction.h).
  double first_full = 0;  // from the start of backward until the first bucket was full
  double hops = 0;        // messages in sequence, summed over buckets
  Traffic last;           // of the last bucket, according to the formula
  double last_hops = 0;
};

// One thread, the training thread, calls it. All references are borrowed.
class GradientReducer {
 public:
  GradientReducer(Communicator& communicator, Strategy& strategy, tensor::Parameters& parameters,
                  std::vector<Bucket> buckets);
  virtual ~GradientReducer() = default;
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Call before the first iteration of a resumed run, in which `iterations` are done.
  void resume_from(std::int64_t iterations) { iteration_ = iterations; }
  // For messages, if the rank is another one than in the communicator.
  void set_rank(int rank) { rank_ = rank; }
  // Later iterations are recorded while `timeline` is on; null: none are.
  void set_timeline(Timeline* timeline) { timeline_ = timeline; }
  virtual void begin(const UpdateStep& step) = 0;
  // Hook of forward: returns when the parameter is up to date.
  virtual void before_use(tensor::ParameterId) {}
  // Called at the start of backward.
  void begin_backward() { backward_began_ = Clock::now(); }
  // Hook of backward. Throws std::logic_error if a parameter is not the next in arena order;
  // std::runtime_error with rank, iteration and parameter if an element of its gradient is infinite
  // or not a number.
  virtual void gradient_ready(tensor::ParameterId id) = 0;
  // Servers call it instead of gradient_ready(): all gradients are final.
  virtual void all_ready() = 0;
  // A worker without samples in this iteration calls it: all gradients become zero, and are final.
  void all_zero();
  // Ends the iteration. With `is_complete` all parameters are up to date when it returns; else some
  // may be updated in the next forward, by before_use().
  virtual ExchangeRecord finish(bool is_complete = true) = 0;
  // Returns when all parameters are up to date. Call it before gradients are written other than by
  // backward.
  virtual void settle() {}

  // Seconds spent in the hooks so far in this iteration, with updates of parameters.
  double seconds_in_forward() const { return seconds_in_forward_; }
  double seconds_in_backward() const { return record_.in_backward; }

 protected:
  // Begins the measurement of an iteration.
  void begin_record();
  // Checks the order and the numbers of a final gradient, and counts it.
  void count_ready(tensor::ParameterId id);
  // Throws std::logic_error if backward has not reported all gradients.
  void require_all_ready() const;
  // True if all gradients of bucket `i` are final.
  bool is_full(std::size_t i) const;
  std::span<float> gradients_of(std::size_t i);
  Work start_exchange(std::size_t i);
  // Begins an iteration of the strategy. Skipped updates do not count in the optimizer's step.
  void begin_strategy(const UpdateStep& step);
  // Decodes bucket `i`, whose exchange is done; the time counts as waiting.
  void receive(std::size_t i);
  // Applies bucket `i`, and counts its exchange.
  void apply(std::size_t i);
  // The same without its bytes, which count_exchange() adds to the formula.
  void update(std::size_t i);
  // True if only apply_all() may apply buckets.
  bool needs_all_sums() const;
  // Applies all buckets, or skips the update. Call only if needs_all_sums().
  void apply_all();
  // Waits until the strategy has updated all parameters.
  void end_strategy();
  void count_exchange(std::size_t i);
  void begin_flight(std::size_t i);
  void end_flight(std::size_t i, Clock::time_point now);
  // Begins a round of exchanges, one for each bucket. No gradient is final yet.
  void begin_exchanges();
  // Adds a span of the training thread, from `start` until now, to the timeline.
  void note(std::string_view name, Clock::time_point start);
  void note(std::string_view name, std::size_t bucket, Clock::time_point start);
  // The spans queued, exchanged and, until it was `taken`, received of bucket `i`.
  void note_exchange(std::size_t i, Clock::time_point taken);
  // The union of the flights of all buckets, which all have ended.
  double seconds_in_flight() const;
  // `is_in_flight`: exchanges go on; what they move from now on is of the next record.
  ExchangeRecord end_record(bool is_in_flight = false);

  Communicator& communicator_;
  Strategy& strategy_;
  int rank_;
  tensor::Parameters& parameters_;
  const std::vector<Bucket> buckets_;
  std::vector<int> position_;   // position of each parameter in arena order
  int ready_ = 0;               // number of parameters whose gradients are final
  std::size_t full_ = 0;        // number of buckets whose gradients are final
  std::int64_t iteration_ = 0;  // 1, 2, ...
  ExchangeRecord record_;
  double seconds_in_forward_ = 0;

 private:
  // Time in flight of one bucket. Its end is set by the thread that completes the exchange.
  struct Flight {
    Clock::time_point full;  // when its last gradient became final
    Clock::time_point start;
    std::atomic<Clock::rep> end{0};  // 0: not known yet
  };

  void require_finite(tensor::ParameterId id) const;

  // Adds the spans of bucket `i` to the timeline: queued, exchanged, received, applied. Its update
  // began at `start`.
  void note_life(std::size_t i, Clock::time_point start);

  Timeline* timeline_ = nullptr;
  Clock::time_point backward_began_;
  std::shared_ptr<std::vector<Flight>>
      flights_;  // one per bucket; also held by exchanges in flight
  CommunicatorStatistics before_;
  bool is_in_flight_ = false;  // of the last end_record()
};

// The sizes of the buckets for a value of sync=; `usual`: those of Sync::bucketed.
BucketSizes bucket_sizes(Sync sync, const BucketSizes& usual);

// The reducer of an arm whose servers, if any, take part in collectives. `helps_in_backward`: make
// progress at every gradient; needed unless a progress thread does it. Collective for
// Sync::prioritized and Sync::fusion.
std::unique_ptr<GradientReducer> make_reducer(const Arm& arm, Strategy& strategy,
                                              const StrategyContext& context,
                                              bool helps_in_backward = true);

}  // namespace kolo::train
