// All-reduce: each bucket is all-reduced in place, and each worker applies the whole optimizer to
// the same sums. The optimizer's work and its momentum exist n times.
//
// The arms differ in the algorithm: `ring`, `tree` (two binary trees, each for half of the data),
// `hierarchical` (inside hosts first, then across hosts), `auto` (the planner's choice for each
// bucket). A rank's bytes by the formula are those of the algorithm that runs.
//
// `local-sgd:H` applies each worker's own gradients to its own parameters, and averages the
// parameters every H iterations, by a ring. A worker's momentum stays its own. With H = 1 it equals
// synchronous training, except for rounding: SGD with momentum is linear in the gradients. Source:
// Stich, "Local SGD converges fast and communicates little", ICLR 2019.
#include "train/strategies/all_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "collectives/algorithms/bidirectional_ring.h"
#include "collectives/algorithms/direct_reduce.h"
#include "collectives/algorithms/double_tree.h"
#include "collectives/algorithms/halving_doubling.h"
#include "collectives/algorithms/hierarchical.h"
#include "collectives/algorithms/recursive_doubling.h"
#include "collectives/algorithms/recursive_multiplying.h"
#include "collectives/algorithms/ring.h"
#include "train/strategies/top_k.h"

namespace kolo::train {
namespace {

struct ArmAlgorithm {
  std::string_view strategy;
  std::string_view algorithm;  // empty: the planner's choice
};
constexpr std::array<ArmAlgorithm, 6> kAlgorithms{{
    {"ring", "ring"},
    {"tree", "double_tree"},
    {"hierarchical", "hierarchical"},
    {"auto", ""},
    {"local-sgd", "ring"},
    {"pipeline", "ring"},  // between replicas
}};
// Sums in the order of ranks, and moves as many bytes as a ring.
constexpr std::string_view kInRankOrder = "two_shot";

std::string_view algorithm_of(const Arm& arm) {
  for (const ArmAlgorithm& row : kAlgorithms) {
    if (row.strategy == arm.strategy) return row.algorithm;
  }
  throw std::invalid_argument(fmt::format("'{}' is not an arm of all-reduce", arm.strategy));
}

class AllReduce : public Strategy {
 public:
  AllReduce(const Arm& arm, StrategyContext context)
      : context_(std::move(context)),
        algorithm_(context_.is_invariant && context_.workers > 2 ? kInRankOrder
                                                                 : algorithm_of(arm)),
        optimizer_(context_.make_optimizer()),
        update_(context_.gradients) {
    if (context_.hook && context_.gradients.format != GradientFormat::float32)
      throw std::invalid_argument("a hook exchanges float32; do not set a GradientFormat with it");
    if (context_.gradients.format == GradientFormat::top_k)
      top_k_.emplace(context_.communicator, context_.buckets,
                     context_.parameters.gradients().size(), context_.gradients.sent_part);
  }

  Work exchange(std::size_t i) override {
    if (context_.hook) return context_.hook(context_.communicator, i, gradients_of(i));
    return top_k_ ? top_k_->exchange(i, gradients_of(i)) : exchange_buffer(gradients_of(i));
  }

  void receive(std::size_t i) override {
    if (context_.hook) return;
    if (top_k_) return top_k_->receive(i, gradients_of(i));
    receive_buffer(gradients_of(i));
  }

  Work exchange_buffer(std::span<float> gradients) override {
    return reduce(update_.encode(gradients), ReduceOp::kSum);
  }

  void receive_buffer(std::span<float> gradients) override { update_.decode(gradients); }

  // A worker has all sums, but a stage of a pipeline only its own. So stages add their squares, in
  // their order: all replicas must get the same bits.
  bool prepare_update() override {
    const std::span<float> sums = context_.parameters.gradients();
    return update_.prepare({&sums, 1}, [this](double squares) {
      if (context_.stages == nullptr) return squares;
      std::vector<double> all(static_cast<std::size_t>(context_.stages->size()));
      context_.stages->all_gather(std::span<const double>(&squares, 1), std::span(all));
      return std::accumulate(all.begin(), all.end(), 0.0);
    });
  }

  GradientUpdate* gradient_update() override { return &update_; }

  void apply(std::size_t i) override {
    optimizer_->apply(context_.buckets[i].range.begin, part(context_.parameters.values(), i),
                      gradients_of(i), step_);
  }

  // In each of these algorithms a rank receives as much as it sends.
  Traffic traffic(std::int64_t elements) const override {
    if (top_k_) {
      const std::size_t others = static_cast<std::size_t>(context_.communicator.size()) - 1;
      const auto bytes =
          static_cast<double>(others * TopK::bytes_sent(elements, context_.gradients.sent_part));
      return {bytes, bytes};
    }
    const auto count = static_cast<std::size_t>(elements);
    const std::size_t sent = all_reduce_sent(context_.communicator, algorithm_for(count), count);
    const double bytes = static_cast<double>(sent * update_.element_bytes());
    return {bytes, bytes};
  }

  int hops(std::int64_t elements) const override {
    const int size = context_.communicator.size();
    const int depth = std::bit_width(static_cast<unsigned>(size - 1));
    const auto around = [](int ranks) { return 2 * (ranks - 1); };
    const std::string_view algorithm = algorithm_for(static_cast<std::size_t>(elements));
    if (size == 1) return 0;
    if (top_k_) return size - 1;
    if (algorithm == "one_shot") return 1;
    if (algorithm == "two_shot") return 2;
    if (algorithm == "recursive_doubling") return depth;
    if (algorithm == "double_tree" || algorithm == "halving_doubling") return 2 * depth;
    if (algorithm == "recursive_multiplying") return recursive_multiplying_all_reduce_hops(size);
    if (algorithm == "hierarchical") {
      const int hosts = std::ranges::max(context_.communicator.hosts()) + 1;
      return 2 + (hosts == 2 ? 1 : around(hosts));
    }
    return around(size);
  }

  std::vector<Optimizer*> optimizers() override { return {optimizer_.get()}; }

  std::span<float> unsent() override { return top_k_ ? top_k_->unsent() : std::span<float>(); }

 protected:
  Work reduce(const Buffer& elements, ReduceOp op) {
    CallOptions call;
    call.algorithm = algorithm_;
    return context_.communicator.all_reduce_async(elements, op, call);
  }

  std::span<float> part(std::span<float> arena, std::size_t i) const {
    const tensor::Range range = context_.buckets[i].range;
    return arena.subspan(static_cast<std::size_t>(range.begin),
                         static_cast<std::size_t>(range.count));
  }
  std::span<float> gradients_of(std::size_t i) { return part(context_.parameters.gradients(), i); }

  StrategyContext context_;

 private:
  std::string_view algorithm_for(std::size_t count) const {
    if (!algorithm_.empty()) return algorithm_;
    return context_.communicator.algorithm(Collective::kAllReduce, count * update_.element_bytes());
  }

  std::string_view algorithm_;
  std::unique_ptr<Optimizer> optimizer_;
  GradientUpdate update_;
  std::optional<TopK> top_k_;
};

// Exchanges parameters, after apply().
class LocalSgd final : public AllReduce {
 public:
  using AllReduce::AllReduce;

  Work exchange(std::size_t i) override {
    return reduce(part(context_.parameters.values(), i), ReduceOp::kAverage);
  }

  Work exchange_buffer(std::span<float> gradients) override {
    return Strategy::exchange_buffer(gradients);
  }

  // Gradients are divided by the size of the global batch. Times n, their average over the workers
  // is the gradient of the mean loss, also if shares differ.
  void apply(std::size_t i) override {
    if (context_.workers > 1) {
      const auto workers = static_cast<float>(context_.workers);
      for (float& gradient : gradients_of(i)) gradient *= workers;
    }
    AllReduce::apply(i);
  }
};

}  // namespace

std::size_t all_reduce_sent(const Communicator& communicator, std::string_view algorithm,
                            std::size_t count) {
  const int rank = communicator.rank();
  const int size = communicator.size();
  if (algorithm == "double_tree") return double_tree_all_reduce_sent(rank, size, count);
  if (algorithm == "one_shot") return one_shot_all_reduce_sent(rank, size, count);
  if (algorithm == "two_shot") return two_shot_all_reduce_sent(rank, size, count);
  if (algorithm == "halving_doubling") return halving_doubling_all_reduce_sent(rank, size, count);
  if (algorithm == "recursive_doubling")
    return recursive_doubling_all_reduce_sent(rank, size, count);
  if (algorithm == "recursive_multiplying")
    return recursive_multiplying_all_reduce_sent(rank, size, count);
  if (algorithm == "hierarchical") {
    ScheduleRequest request;
    request.rank = rank;
    request.size = size;
    request.hosts = communicator.hosts();
    return hierarchical_all_reduce_traffic(request, count).sent;
  }
  return ring_all_reduce_sent(rank, size, count);  // also of a bidirectional ring
}

std::unique_ptr<Strategy> make_all_reduce(const Arm& arm, StrategyContext context) {
  if (arm.local_steps > 0) return std::make_unique<LocalSgd>(arm, std::move(context));
  return std::make_unique<AllReduce>(arm, std::move(context));
}

}  // namespace kolo::train
