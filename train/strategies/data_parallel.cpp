// Data parallelism around one rank, as torch.nn.DataParallel does over the devices of one process.
//
// Rank 0 holds the model and the optimizer. In each iteration it sends the parameters and a share
// of the batch to all ranks, and receives the sum of their gradients (DataParallelReducer). The
// parameters and the gradients travel along a binomial tree, so rank 0 sends and receives them up
// to ceil(log2 n) times. All other arms move less through one rank: this arm shows why.
#include "train/strategies/data_parallel.h"

#include <bit>

#include "collectives/algorithms/binomial_tree.h"
#include "collectives/algorithms/chain.h"

namespace kolo::train {
namespace {

constexpr int kRoot = 0;
constexpr std::string_view kTree = "binomial_tree";
constexpr std::string_view kInRankOrder = "ordered_chain";

class DataParallel final : public Strategy {
 public:
  explicit DataParallel(StrategyContext context)
      : context_(std::move(context)),
        is_ordered_(context_.is_invariant && context_.workers > 2),
        optimizer_(is_root() ? context_.make_optimizer() : nullptr),
        update_(context_.gradients) {}

  Work exchange(std::size_t i) override {
    CallOptions call;
    call.algorithm = is_ordered_ ? kInRankOrder : kTree;
    return context_.communicator.reduce_async(
        update_.encode(part(context_.parameters.gradients(), i)), kRoot, ReduceOp::kSum, call);
  }

  // On every rank, so that the gaps between parameters are zero again.
  void receive(std::size_t i) override { update_.decode(part(context_.parameters.gradients(), i)); }

  // Rank 0 alone has the sums.
  bool prepare_update() override {
    const std::span<float> sums = context_.parameters.gradients();
    return update_.prepare({&sums, is_root() ? 1U : 0U}, [this](double squares) {
      context_.communicator.broadcast(std::span<double>(&squares, 1), kRoot);
      return squares;
    });
  }

  GradientUpdate* gradient_update() override { return &update_; }

  void apply(std::size_t i) override {
    if (!is_root()) return;
    optimizer_->apply(context_.buckets[i].range.begin, part(context_.parameters.values(), i),
                      part(context_.parameters.gradients(), i), step_);
  }

  // Of the reduction and of the broadcast of the parameters.
  Traffic traffic(std::int64_t elements) const override {
    const int rank = context_.communicator.rank(), size = context_.workers;
    const auto count = static_cast<std::size_t>(elements);
    const std::size_t to_children = binomial_tree_broadcast_sent(rank, size, kRoot, count);
    const std::size_t from_parent = is_root() ? 0 : count;
    std::size_t up = binomial_tree_reduce_sent(rank, kRoot, count), down = to_children;
    if (is_ordered_) up = down = ordered_chain_reduce_sent(rank, size, kRoot, count);
    const std::size_t bytes = update_.element_bytes();
    const std::size_t sent = up * bytes + to_children * sizeof(float);
    const std::size_t received = down * bytes + from_parent * sizeof(float);
    return {static_cast<double>(sent), static_cast<double>(received)};
  }

  // Of the reduction.
  int hops(std::int64_t) const override {
    return is_ordered_ ? context_.workers
                       : std::bit_width(static_cast<unsigned>(context_.workers - 1));
  }

  std::vector<Optimizer*> optimizers() override {
    return is_root() ? std::vector{optimizer_.get()} : std::vector<Optimizer*>{};
  }

 private:
  bool is_root() const { return context_.communicator.rank() == kRoot; }

  std::span<float> part(std::span<float> arena, std::size_t i) const {
    const tensor::Range range = context_.buckets[i].range;
    return arena.subspan(static_cast<std::size_t>(range.begin),
                         static_cast<std::size_t>(range.count));
  }

  StrategyContext context_;
  bool is_ordered_;
  std::unique_ptr<Optimizer> optimizer_;  // rank 0's
  GradientUpdate update_;
};

}  // namespace

std::unique_ptr<Strategy> make_data_parallel(const Arm&, StrategyContext context) {
  return std::make_unique<DataParallel>(std::move(context));
}

void broadcast_parameters(Communicator& communicator, tensor::Parameters& parameters) {
  CallOptions call;
  call.algorithm = kTree;
  communicator.broadcast(parameters.values(), kRoot, call);
}

}  // namespace kolo::train
