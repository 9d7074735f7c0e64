// Gradient buckets: averages a program's gradients over all ranks, while backward still runs.
//
// For any flat array of gradients. A training loop of one process becomes a distributed one by five
// changes:
//
//   auto world = kolo::Communicator::from_environment();        // join
//   world.broadcast(parameters);                                // begin with the same parameters
//   const float rate = 0.01f * world.size();                    // scale the learning rate
//   kolo::GradientBuckets buckets(world, gradients, lengths);
//   buckets.ready(i);  // in backward: gradient i is final      // reduce
//   buckets.wait();    // before the optimizer's step           // `gradients` has the averages
//
// A *bucket* is a range of the array that is exchanged together. A bucket ends with the parameter
// that brings it to its size, as in PyTorch's DDP; no parameter is split. Gradients may become
// final in any order, also in another order on each rank: a bucket starts once it is full and all
// earlier ones have started. So all ranks start exchanges in one order. Communication overlaps best
// if the array is in the order in which backward ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "buffer.h"
#include "communicator.h"
#include "options.h"
#include "work.h"

namespace kolo::inline v0 {

// Sizes in bytes. Small buckets cost a latency each. The last bucket starts after backward, so its
// time is not hidden. The first is small, so that communication begins early.
struct BucketSizes {
  std::int64_t first_bytes = std::int64_t{1} << 20;
  std::int64_t bytes = std::int64_t{25} << 20;
};

// Parameters [first_parameter, first_parameter + parameters), which are the elements [first, first
// + count).
struct GradientBucket {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t first_parameter = 0;
  std::size_t parameters = 0;
};

// `lengths`: elements of each parameter, from the front of the array to its back. `element_bytes`:
// of one element. std::invalid_argument: a size is below 1.
std::vector<GradientBucket> plan_gradient_buckets(std::span<const std::size_t> lengths,
                                                  std::size_t element_bytes,
                                                  const BucketSizes& sizes);

// One thread uses it at a time. The communicator and the gradients are borrowed. All ranks make one
// with the same lengths, sizes and operation, and end every iteration with wait(): a rank without a
// batch sets its gradients to zero and calls ready_all(). A rank that leaves an iteration out is
// found by its next collective operation, which differs from its peers' (kMismatch), or by their
// timeout. Errors of the exchange are kolo::Error, thrown by any of these functions.
class GradientBuckets {
 public:
  struct Settings {
    BucketSizes sizes = {};
    ReduceOp op = ReduceOp::kAverage;
    CallOptions call = {};  // of each all_reduce; without a stream
  };

  // std::invalid_argument: `lengths` do not add up to the number of gradients.
  GradientBuckets(Communicator& communicator, Buffer gradients,
                  std::span<const std::size_t> lengths, Settings settings);
  GradientBuckets(Communicator& communicator, Buffer gradients,
                  std::span<const std::size_t> lengths)
      : GradientBuckets(communicator, gradients, lengths, Settings()) {}

  // The gradient of `parameter` is final. From here to wait() it must be neither read nor written.
  // Starts the buckets that are full now, and makes progress without blocking.
  // std::invalid_argument: no such parameter, or it was ready before in this iteration.
  void ready(std::size_t parameter);
  // The same for all parameters that are not ready yet.
  void ready_all();
  // Returns once all buckets are averaged; the next iteration begins. std::invalid_argument, before
  // it waits: a parameter is not ready; the message has its number.
  void wait();

  std::span<const GradientBucket> buckets() const { return buckets_; }

 private:
  void count_ready(std::size_t parameter);
  void start_full();

  Communicator& communicator_;
  Buffer gradients_;
  Settings settings_;
  std::vector<GradientBucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // of each parameter
  std::vector<bool> is_ready_;          // of each parameter
  std::vector<std::size_t> missing_;    // of each bucket: parameters that are not ready
  std::vector<Work> works_;             // of the started buckets
};

}  // namespace kolo::inline v0
