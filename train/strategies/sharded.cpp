// Sharded optimizer: each worker updates its own shard of the parameters.
//
// A shard is a chunk of every bucket. A bucket's gradients are reduce-scattered during backward.
// Then each worker applies the optimizer to its chunk, and all workers gather the new parameters.
// A ring's all-reduce is the same two halves, so in float32 the bytes are equal. But each of n
// workers does 1 / n of the optimizer's work, and holds 1 / n of its state (SGD: the momentum).
//
// Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
// models", 2020 (the first stage).
#include "train/strategies/sharded.h"

#include "collectives/algorithms/direct_reduce.h"
#include "collectives/algorithms/ring.h"
#include "collectives/schedule.h"

namespace kolo::train {
namespace {

constexpr std::string_view kRing = "ring";
constexpr std::string_view kInRankOrder = "direct";  // as many bytes as the ring

class Sharded final : public Strategy {
 public:
  explicit Sharded(StrategyContext context)
      : context_(std::move(context)),
        is_in_rank_order_(context_.is_invariant && context_.workers > 2),
        update_(context_.gradients) {
    for (std::size_t i = 0; i < context_.buckets.size(); ++i) {
      const tensor::Range mine = shard(i);
      optimizers_.push_back(context_.make_optimizer(mine.begin, mine.count));
    }
  }

  Work exchange(std::size_t i) override {
    CallOptions call;
    call.algorithm = is_in_rank_order_ ? kInRankOrder : kRing;
    const Buffer all = update_.encode(gradients_of(i));
    const Buffer mine{encoded_shard(i), static_cast<std::size_t>(shard(i).count), all.type};
    return context_.communicator.reduce_scatter_async({all.data, all.count, all.type}, mine,
                                                      ReduceOp::kSum, call);
  }

  // Of the whole bucket: narrow values may have overwritten the zeros between its parameters.
  void receive(std::size_t i) override { update_.decode(gradients_of(i)); }

  bool prepare_update() override {
    std::vector<std::span<float>> sums;
    for (std::size_t i = 0; i < context_.buckets.size(); ++i)
      sums.push_back(part(context_.parameters.gradients(), shard(i)));
    return update_.prepare(sums, [this](double squares) {
      context_.communicator.all_reduce(std::span<double>(&squares, 1));
      return squares;
    });
  }

  GradientUpdate* gradient_update() override { return &update_; }

  // The gathering of this bucket runs while the next ones are updated.
  void apply(std::size_t i) override {
    const tensor::Range mine = shard(i);
    const std::span<float> values = context_.parameters.values();
    optimizers_[i]->apply(mine.begin, part(values, mine),
                          part(context_.parameters.gradients(), mine), step_);
    CallOptions call;
    call.algorithm = kRing;
    gathering_.push_back(context_.communicator.all_gather_async(
        part(values, mine), part(values, context_.buckets[i].range), call));
  }

  void end_iteration() override {
    for (Work& work : gathering_) work.wait();
    gathering_.clear();
  }

  Traffic traffic(std::int64_t elements) const override {
    const int rank = context_.communicator.rank(), size = context_.workers;
    const auto count = static_cast<std::size_t>(elements);
    const std::size_t scattered = is_in_rank_order_ ? direct_reduce_scatter_sent(rank, size, count)
                                                    : ring_reduce_scatter_sent(rank, size, count);
    const auto bytes = static_cast<double>(scattered * update_.element_bytes());
    Traffic all = traffic_of_update(elements);
    all += {bytes, bytes};
    return all;
  }

  // The gathering.
  Traffic traffic_of_update(std::int64_t elements) const override {
    const auto bytes = static_cast<double>(
        sizeof(float) * ring_all_gather_sent(context_.communicator.rank(), context_.workers,
                                             static_cast<std::size_t>(elements)));
    return {bytes, bytes};
  }

  int hops(std::int64_t) const override {
    const int around = context_.workers - 1;
    return is_in_rank_order_ && around > 0 ? 1 + around : 2 * around;
  }

  std::vector<Optimizer*> optimizers() override {
    std::vector<Optimizer*> held;
    for (const auto& optimizer : optimizers_) held.push_back(optimizer.get());
    return held;
  }

 private:
  // This worker's chunk of bucket `i`, in the arena.
  tensor::Range shard(std::size_t i) const {
    const tensor::Range bucket = context_.buckets[i].range;
    const auto count = static_cast<std::size_t>(bucket.count);
    const int rank = context_.communicator.rank(), size = context_.workers;
    return {bucket.begin + static_cast<std::int64_t>(chunk_begin(count, size, rank)),
            static_cast<std::int64_t>(chunk_count(count, size, rank))};
  }

  std::span<float> gradients_of(std::size_t i) {
    return part(context_.parameters.gradients(), context_.buckets[i].range);
  }

  // The place of this worker's chunk in the encoded bucket.
  std::byte* encoded_shard(std::size_t i) {
    const auto before = static_cast<std::size_t>(shard(i).begin - context_.buckets[i].range.begin);
    return reinterpret_cast<std::byte*>(gradients_of(i).data()) + before * update_.element_bytes();
  }

  static std::span<float> part(std::span<float> arena, tensor::Range range) {
    return arena.subspan(static_cast<std::size_t>(range.begin),
                         static_cast<std::size_t>(range.count));
  }

  StrategyContext context_;
  bool is_in_rank_order_;
  GradientUpdate update_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  // one per bucket, of this worker's chunk
  std::vector<Work> gathering_;                         // of updated buckets
};

}  // namespace

std::unique_ptr<Strategy> make_sharded(const Arm&, StrategyContext context) {
  return std::make_unique<Sharded>(std::move(context));
}

}  // namespace kolo::train
