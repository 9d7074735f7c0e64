#include "train/data/batch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "train/count_text.h"
#include "train/data/dataset.h"
#include "train/data/random.h"

namespace kolo::train {

std::vector<std::uint32_t> epoch_order(std::int64_t samples, std::uint64_t seed,
                                       std::int64_t epoch) {
  if (samples < 0 || samples > std::numeric_limits<std::uint32_t>::max() || epoch < 0) {
    throw std::invalid_argument(fmt::format("epoch_order: {} samples in epoch {}", samples, epoch));
  }
  std::vector<std::uint32_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0u);
  Random random(seed, Purpose::permutation, static_cast<std::uint64_t>(epoch));
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.below(static_cast<std::uint32_t>(left))]);
  }
  return order;
}

std::vector<OrderRange> micro_batches(std::int64_t samples, std::int64_t micro_batch) {
  std::vector<OrderRange> parts;
  if (micro_batch == 0) micro_batch = samples;
  for (std::int64_t begin = 0; begin < samples; begin += micro_batch)
    parts.push_back({begin, std::min(micro_batch, samples - begin)});
  return parts;
}

BatchPlan::BatchPlan(std::int64_t samples, std::int64_t global_batch, int ranks)
    : samples_(samples), global_batch_(global_batch), ranks_(ranks) {
  if (ranks < 1) throw std::invalid_argument(fmt::format("BatchPlan: {} ranks", ranks));
  if (samples < 1) throw DataError("there are no samples to train or evaluate on");
  if (ranks > samples) {
    throw DataError(
        fmt::format("more ranks than samples: {}, but {}; use fewer ranks, or more samples "
                    "(--train-size, --test-size)",
                    count_text(ranks, "rank"), count_text(samples, "sample")));
  }
  if (global_batch < ranks) {
    throw DataError(
        fmt::format("a global batch of {} leaves some of {} ranks without work; it must be at "
                    "least one sample a rank",
                    global_batch, ranks));
  }
}

std::int64_t BatchPlan::iterations_per_epoch() const { return (samples_ - 1) / global_batch_ + 1; }

OrderRange BatchPlan::global(std::int64_t iteration) const {
  if (iteration < 0 || iteration >= iterations_per_epoch()) {
    throw std::invalid_argument(fmt::format("BatchPlan: iteration {} of an epoch of {}", iteration,
                                            iterations_per_epoch()));
  }
  const std::int64_t begin = iteration * global_batch_;
  return {begin, std::min(global_batch_, samples_ - begin)};
}

OrderRange BatchPlan::local(std::int64_t iteration, int rank) const {
  if (rank < 0 || rank >= ranks_)
    throw std::invalid_argument(fmt::format("BatchPlan: rank {} of {}", rank, ranks_));
  return share_of(global(iteration), rank, ranks_);
}

}  // namespace kolo::train
