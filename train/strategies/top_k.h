// Top-k: of each bucket only the largest elements are sent, with their positions.
//
// The rest is not lost but added to the bucket's next gradients: *error feedback*. Every worker
// gets the choices of all (an all-gather), and sums them in the order of ranks, so all get the same
// bits.
//
// Sources: Lin et al., "Deep gradient compression", 2018; Stich et al., "Sparsified SGD with
// memory", 2018.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/communicator.h"
#include "train/loop/buckets.h"

namespace kolo::train {

// The indices of the `count` elements with the largest magnitudes, in ascending order. If several
// elements tie for the last places, those with the lowest indices are taken. `values`: finite.
std::vector<std::int32_t> largest_elements(std::span<const float> values, std::size_t count);

// One object per rank, one thread at a time.
class TopK {
 public:
  // `elements`: of the arena.
  TopK(Communicator& communicator, std::span<const Bucket> buckets, std::size_t elements,
       double sent_part);

  // Bytes of one worker's choice from a bucket of `elements`.
  static std::size_t bytes_sent(std::int64_t elements, double sent_part);

  // Starts the exchange of bucket `i`, and keeps the rest of `gradients` for the next call.
  Work exchange(std::size_t i, std::span<const float> gradients);
  // The exchange of bucket `i` is done: `gradients` becomes the sum of all choices.
  void receive(std::size_t i, std::span<float> gradients);
  // Gradients not sent yet, laid out as the arena.
  std::span<float> unsent() { return unsent_; }

 private:
  // One element that is sent.
  struct Choice {
    std::int32_t index;  // in the bucket
    float value;
  };
  struct Exchange {
    tensor::Range range;          // of the bucket
    std::vector<Choice> choices;  // of all ranks, one after the other
  };

  Communicator& communicator_;
  double sent_part_;
  std::vector<float> unsent_;
  std::vector<Exchange> exchanges_;  // one per bucket
};

}  // namespace kolo::train
