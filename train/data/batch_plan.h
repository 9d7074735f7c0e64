// Which samples each rank gets in each iteration.
//
// The samples of an epoch are put into an order that depends on (seed, epoch) alone. Iteration i
// takes the i-th slice of global_batch samples of that order, and that slice, the *global batch*,
// is cut into one share per rank. So the samples of an iteration, taken together, are the same for
// every number of ranks: one rank and eight train on the same batches. The last slice of an epoch
// may be short; shares differ by one sample at the most, and may then be empty. Who computes a
// gradient divides by the size of the global batch, never by that of the share: then the sum over
// ranks is the mean over the global batch.
//
// Evaluation uses the same plan without shuffling: each sample is counted once, on whichever rank.
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

// The permutation of an epoch (Fisher and Yates): the same on every rank and platform. `samples`
// is below 2^32.
std::vector<std::uint32_t> epoch_order(std::int64_t samples, std::uint64_t seed,
                                       std::int64_t epoch);

// Rank `rank`'s part of `whole`: parts are adjacent, in the order of ranks, and differ by one at
// the most.
constexpr OrderRange share_of(OrderRange whole, int rank, int ranks) {
  const std::int64_t from = whole.count * rank / ranks;
  const std::int64_t to = whole.count * (rank + 1) / ranks;
  return {whole.begin + from, to - from};
}

// Pure arithmetic; a value.
class BatchPlan {
 public:
  // Throws DataError: no samples, more ranks than samples, or a global batch that leaves a rank
  // without work in every iteration. std::invalid_argument: less than one rank.
  BatchPlan(std::int64_t samples, std::int64_t global_batch, int ranks);

  std::int64_t samples() const { return samples_; }
  int ranks() const { return ranks_; }
  // As given; the last iteration of an epoch may have fewer.
  std::int64_t global_batch() const { return global_batch_; }
  std::int64_t iterations_per_epoch() const;
  // The global batch of an epoch's iteration; throws std::invalid_argument beyond the epoch's end.
  OrderRange global(std::int64_t iteration) const;
  // One rank's share of it.
  OrderRange local(std::int64_t iteration, int rank) const;

 private:
  std::int64_t samples_;
  std::int64_t global_batch_;
  int ranks_;
};

}  // namespace kolo::train
