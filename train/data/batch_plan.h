// Batch plan: which samples each rank gets in each iteration.
//
// The order of an epoch's samples depends only on (seed, epoch). Iteration i takes the i-th slice
// of global_batch samples, the *global batch*. It is split into one share per rank. So the samples
// of an iteration, over all ranks, are the same for every number of ranks. The last slice of an
// epoch may be short. Shares differ by at most one sample, and may then be empty. A rank divides
// its gradient by the size of the global batch, not of its share. Then the sum over ranks is the
// mean over the global batch.
//
// Evaluation uses the same plan without shuffling, so each sample counts once.
#pragma once

#include <cstdint>
#include <vector>

namespace kolo::train {

// Positions [begin, begin + count) of an epoch's order.
struct OrderRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  bool operator==(const OrderRange&) const = default;
};

// The permutation of an epoch (Fisher-Yates shuffle), the same on every rank and platform.
// `samples` is below 2^32.
std::vector<std::uint32_t> epoch_order(std::int64_t samples, std::uint64_t seed,
                                       std::int64_t epoch);

// The part of `whole` that belongs to `rank`. Parts are adjacent, in rank order, and differ by at
// most one.
constexpr OrderRange share_of(OrderRange whole, int rank, int ranks) {
  const std::int64_t from = whole.count * rank / ranks;
  const std::int64_t to = whole.count * (rank + 1) / ranks;
  return {whole.begin + from, to - from};
}

// The micro-batches of a share of `samples` samples: `micro_batch` each, and the last one may be
// shorter. 0: one micro-batch of all.
std::vector<OrderRange> micro_batches(std::int64_t samples, std::int64_t micro_batch);

// Pure arithmetic; a plain value.
class BatchPlan {
 public:
  // Throws DataError: no samples, more ranks than samples, or a global batch that leaves a rank
  // without work in every iteration. std::invalid_argument: less than one rank.
  BatchPlan(std::int64_t samples, std::int64_t global_batch, int ranks);

  std::int64_t samples() const { return samples_; }
  int ranks() const { return ranks_; }
  // The size given to the constructor; the last iteration of an epoch may have fewer samples.
  std::int64_t global_batch() const { return global_batch_; }
  std::int64_t iterations_per_epoch() const;
  // The global batch of an iteration; throws std::invalid_argument beyond the end of the epoch.
  OrderRange global(std::int64_t iteration) const;
  // One rank's share of the global batch.
  OrderRange local(std::int64_t iteration, int rank) const;

 private:
  std::int64_t samples_;
  std::int64_t global_batch_;
  int ranks_;
};

}  // namespace kolo::train
