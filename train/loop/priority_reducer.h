// Priority reducer: exchanges the first layers first, across the end of the iteration.
//
// Forward needs the first layers first, but backward ends with them. So at most kInFlight buckets
// are in flight at a time, and the next is always the full one that forward uses first. An
// iteration ends without a wait for its buckets. In the next forward each layer waits for its own
// bucket.
//
// All ranks must start exchanges in the same order, but buckets fill at different times on
// different ranks. So rank 0 decides: for each bucket it broadcasts the number, over a communicator
// of its own. The other ranks start the bucket once it is full there, too.
//
// Buckets are small: a bucket in flight is not interrupted for a more urgent one.
//
// Source: Jayarajan et al., "Priority-based parameter propagation for distributed DNN training"
// (P3), MLSys 2019; Peng et al., "A generic communication scheduler for distributed DNN training
// acceleration" (ByteScheduler), SOSP 2019.
#pragma once

#include <cstdint>
#include <deque>

#include "train/loop/gradient_reducer.h"

namespace kolo::train {

class PriorityReducer final : public GradientReducer {
 public:
  static constexpr std::size_t kInFlight = 2;

  // Collective: makes the communicator of the decisions.
  PriorityReducer(Communicator& communicator, Strategy& strategy, tensor::Parameters& parameters,
                  std::vector<Bucket> buckets);

  void begin(const UpdateStep& step) override;
  void before_use(tensor::ParameterId id) override;
  void gradient_ready(tensor::ParameterId id) override;
  void all_ready() override;
  ExchangeRecord finish(bool is_complete = true) override;
  void settle() override;

 private:
  enum class State { filling, in_flight, arrived, applied };
  struct Exchange {
    std::size_t bucket;
    Work work;
  };

  void begin_round();
  // Moves what can move without a wait. Parameters are updated only outside backward: backward may
  // still need the old ones of a layer whose gradient is final.
  void advance();
  void collect();
  bool start_next();
  // The bucket of the next exchange; false if rank 0's decision is not known yet.
  bool find_decision(std::size_t& bucket);
  // On rank 0: sets the next decision; false if no full bucket is left to start.
  bool decide();
  void apply_arrived();
  // Waits until bucket `i` is applied.
  void complete(std::size_t i);

  Communicator control_;
  std::vector<std::size_t> bucket_of_;   // of each position in arena order
  std::vector<State> states_;            // of each bucket
  std::vector<std::int32_t> decisions_;  // of each start, in order
  std::vector<Work> decided_;            // broadcasts of `decisions_`, as far as they are issued
  std::size_t started_ = 0;              // exchanges
  std::size_t applied_ = 0;
  std::deque<Exchange> in_flight_;  // oldest first
  UpdateStep step_;
  bool is_begun_ = false;  // the exchanges of this iteration
};

}  // namespace kolo::train
