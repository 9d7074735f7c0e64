// Fusion reducer: Horovod's way. Ready gradients are agreed on per cycle, copied into one buffer
// and all-reduced together.
//
// At most once per kCycle the ranks compare, by a bitwise AND over a communicator of its own, which
// gradients are final on all of them. These are fused: copied into the buffer as far as they fit,
// all-reduced, and copied back. Gradients need not become final in the same order on all ranks.
//
// *Response cache.* A parameter takes part in the AND once it has been negotiated. The first time,
// the ranks send what is ready to rank 0, and rank 0 broadcasts what is ready on all of them.
//
// Cost beside buckets in the arena: two copies of all gradients, and a small all-reduce per cycle.
//
// Source: Sergeev and Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow",
// 2018; the sizes are the defaults of Horovod's documentation.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/loop/gradient_reducer.h"

namespace kolo::train {

class FusionReducer final : public GradientReducer {
 public:
  static constexpr std::size_t kBufferBytes = std::size_t{128} << 20;
  static constexpr std::chrono::milliseconds kCycle{1};

  // Collective: makes the communicator of the agreements. `buckets`: one parameter each.
  FusionReducer(Communicator& communicator, Strategy& strategy, tensor::Parameters& parameters,
                std::vector<Bucket> buckets);

  void begin(const UpdateStep& step) override;
  void gradient_ready(tensor::ParameterId id) override;
  void all_ready() override;
  ExchangeRecord finish(bool is_complete = true) override;

 private:
  enum class Stage {
    idle,
    agreeing,   // on known parameters
    gathering,  // what is ready of the others, at rank 0
    telling,    // what rank 0 found ready on all
    reducing    // the agreed gradients
  };
  using Bits = std::vector<std::uint64_t>;  // one per bucket; the last word is a flag

  // Moves to the next stage if that needs no wait. False if `work_` is not done, or the next cycle
  // is not due.
  bool step(bool is_hurried);
  void begin_cycle();
  void end_agreement();
  void tell();
  void begin_reducing();
  void reduce_next_group();
  void end_group();
  // Takes the buckets of set bits into the queue.
  void queue(const Bits& bits);
  Bits ready_bits(bool is_known) const;

  Communicator control_;
  Stage stage_ = Stage::idle;
  Work work_;  // of the stage
  Clock::time_point cycle_began_;
  std::vector<bool> is_known_;   // in the response cache
  std::vector<bool> is_queued_;  // in this iteration
  Bits bits_;
  Bits gathered_;
  std::vector<std::size_t> queue_;  // agreed in this cycle
  std::size_t group_begin_ = 0;     // of the group in work, in `queue_`
  std::size_t group_end_ = 0;
  std::vector<float> buffer_;
  std::vector<std::size_t> to_apply_;
  std::size_t reduced_ = 0;
  double group_hops_ = 0;  // of all groups of this iteration
  Traffic group_traffic_;
};

}  // namespace kolo::train
