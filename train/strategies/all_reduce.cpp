// Ring: each bucket is all-reduced in place, and each worker applies the whole optimizer to the
// same sums.
//
// Each of n workers sends and receives 2 (n - 1) / n of the gradients. All ranks have the same
// role. The optimizer's work and its momentum exist n times.
#include "train/strategies/ring.h"

namespace kolo::train {
namespace {

class Ring final : public Strategy {
 public:
  explicit Ring(StrategyContext context)
      : context_(std::move(context)),
        sgd_(context_.sgd, 0, static_cast<std::int64_t>(context_.parameters.values().size())) {}

  Work exchange(std::size_t i) override {
    float* gradients = gradients_of(i).data();
    CallOptions call;
    call.algorithm = "ring";
    return context_.communicator.all_reduce_async(
        {gradients, gradients_of(i).size(), ElementType::kFloat32}, ReduceOp::kSum, call);
  }

  void apply(std::size_t i) override {
    const tensor::Range range = context_.buckets[i].range;
    const auto values = context_.parameters.values().subspan(static_cast<std::size_t>(range.begin),
                                                             static_cast<std::size_t>(range.count));
    sgd_.apply(range.begin, values, gradients_of(i), learning_rate_);
  }

  Traffic traffic(std::int64_t elements) const override {
    const double n = context_.workers;
    const double bytes = 2 * (n - 1) / n * static_cast<double>(elements) * sizeof(float);
    return {bytes, bytes};
  }

 private:
  std::span<float> gradients_of(std::size_t i) {
    const tensor::Range range = context_.buckets[i].range;
    return context_.parameters.gradients().subspan(static_cast<std::size_t>(range.begin),
                                                   static_cast<std::size_t>(range.count));
  }

  StrategyContext context_;
  Sgd sgd_;
};

}  // namespace

std::unique_ptr<Strategy> make_ring(const Arm&, StrategyContext context) {
  return std::make_unique<Ring>(std::move(context));
}

}  // namespace kolo::train
