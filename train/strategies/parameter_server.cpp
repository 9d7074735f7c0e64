// Parameter server: workers push the gradients of a bucket, and pull their sum or the result of the
// update. A server holds a shard, which is its share of every bucket, so all servers have work from
// the first bucket on.
//
// A bucket needs no cut into keys of at most 4 MB: a server sums each segment (64 KiB to 2 MiB) as
// it arrives, and answers it as soon as it is complete. Buckets travel in the order of backward,
// the last layers first; only served keys (loop/key_reducer.h) put the first layers first.
//
// The optimizer runs:
//
//   at the worker  Workers pull sums, and each applies the whole optimizer, as with a ring. This is
//                  the default, because it compares communication only.
//   at the server  Workers pull new parameters. A server holds the parameters and the momentum of
//                  its shard, and updates a piece when its sum is complete, while later pieces
//                  arrive. The work and the momentum exist once, not once per worker.
//
// Both call the same optimizer on ranges. The update of an element depends on that element only, so
// both end with the same bits. (LARS needs whole layers, so it cannot run at servers.) Workers pull
// into the gradients' memory, also when they pull parameters, and a server that is also a worker
// updates a copy: backward may still need the old parameters of a layer whose gradient is final.
// After backward, apply() copies the new ones to their place.
//
// Traffic, w workers and s dedicated servers: a worker sends and receives the gradients once; a
// server w / s times. With a server in each of n workers: 2 (n - 1) / n, as with a ring. With both
// (split), the shares of balanced_plan(): 2n (n - 1) / (n^2 + sn - 2s) for every rank. With split
// and n servers or more, the dedicated servers alone serve.
#include "train/strategies/parameter_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "train/count_text.h"

namespace kolo::train {
namespace {

std::span<float> part(std::span<float> arena, tensor::Range range) {
  return arena.subspan(static_cast<std::size_t>(range.begin),
                       static_cast<std::size_t>(range.count));
}

class ParameterServer final : public Strategy {
 public:
  ParameterServer(const Arm& arm, StrategyContext context)
      : arm_(arm), context_(std::move(context)), update_(context_.gradients) {
    const int size = context_.communicator.size();
    if (size != context_.workers + arm.servers) {
      throw std::invalid_argument(fmt::format(
          "{}: {} and {} need {} ranks, not {}", arm.name(), count_text(context_.workers, "worker"),
          count_text(arm.servers, "dedicated server"), context_.workers + arm.servers, size));
    }
    std::vector<int> servers(static_cast<std::size_t>(arm.servers));
    std::iota(servers.begin(), servers.end(), context_.workers);
    plan_ = arm.placement == ServerPlacement::split
                ? balanced_plan(std::move(servers), size)
                : ServerPlan{arm.placement == ServerPlacement::everywhere, std::move(servers)};
    if (arm.update_at == UpdateAt::server) {
      if (!arm.is_served()) hold_shard();
    } else if (context_.is_worker()) {
      optimizers_.push_back(context_.make_optimizer());
    }
  }

  Work exchange(std::size_t i) override {
    const tensor::Range bucket = context_.buckets[i].range;
    Buffer gradients{nullptr, static_cast<std::size_t>(bucket.count), update_.type()};
    if (context_.is_worker())
      gradients = update_.encode(part(context_.parameters.gradients(), bucket));
    ServerUpdate update;
    if (arm_.update_at == UpdateAt::server && is_server()) {
      update = [this, i](std::size_t first, std::span<std::byte> sums) {
        update_piece(i, static_cast<std::int64_t>(first), sums);
      };
    }
    return context_.communicator.push_pull_async({gradients.data, gradients.count, gradients.type},
                                                 gradients, ReduceOp::kSum, plan_, update);
  }

  void receive(std::size_t i) override {
    if (context_.is_worker())
      update_.decode(part(context_.parameters.gradients(), context_.buckets[i].range));
  }

  // Every worker has the same sums. Servers do not update.
  bool prepare_update() override {
    if (!context_.is_worker()) return true;
    const std::span<float> sums = context_.parameters.gradients();
    return update_.prepare({&sums, 1}, [](double squares) { return squares; });
  }

  GradientUpdate* gradient_update() override { return &update_; }

  void apply(std::size_t i) override {
    if (!context_.is_worker()) return;
    const tensor::Range bucket = context_.buckets[i].range;
    const std::span<float> values = part(context_.parameters.values(), bucket);
    const std::span<float> pulled = part(context_.parameters.gradients(), bucket);
    if (arm_.update_at == UpdateAt::server) {
      std::memcpy(values.data(), pulled.data(), values.size_bytes());
    } else {
      optimizers_.front()->apply(bucket.begin, values, pulled, step_);
    }
  }

  Traffic traffic(std::int64_t elements) const override {
    const auto all = static_cast<std::size_t>(elements);
    const std::size_t served = share(all).count;
    const auto workers = static_cast<std::size_t>(context_.workers);
    const std::size_t moved =
        context_.is_worker() ? all - served + (workers - 1) * served : workers * served;
    const double bytes = static_cast<double>(moved * update_.element_bytes());
    return {bytes, bytes};
  }

  std::vector<Optimizer*> optimizers() override {
    std::vector<Optimizer*> held;
    for (const auto& optimizer : optimizers_) held.push_back(optimizer.get());
    return held;
  }

 private:
  bool is_server() const { return plan_.everywhere || !context_.is_worker(); }
  // What this rank serves of `count` elements.
  ServerShare share(std::size_t count) const {
    const Communicator& communicator = context_.communicator;
    return share_of(plan_, communicator.rank(), communicator.size(), count);
  }

  // One optimizer per bucket, for this server's share of it.
  void hold_shard() {
    if (!is_server()) return;
    for (const Bucket& bucket : context_.buckets) {
      const ServerShare held = share(static_cast<std::size_t>(bucket.range.count));
      optimizers_.push_back(
          context_.make_optimizer(bucket.range.begin + static_cast<std::int64_t>(held.begin),
                                  static_cast<std::int64_t>(held.count)));
    }
  }

  // Replaces the sum of a piece of bucket `i` by the new parameters.
  void update_piece(std::size_t i, std::int64_t first, std::span<std::byte> sums) {
    const std::size_t count = sums.size() / sizeof(float);
    const tensor::Range piece{context_.buckets[i].range.begin + first,
                              static_cast<std::int64_t>(count)};
    std::span<float> values = part(context_.parameters.values(), piece);
    if (context_.is_worker()) {
      copy_.assign(values.begin(), values.end());
      values = copy_;
    }
    auto* numbers = reinterpret_cast<float*>(sums.data());
    optimizers_[i]->apply(piece.begin, values, {numbers, count}, step_);
    std::memcpy(numbers, values.data(), values.size_bytes());
  }

  Arm arm_;
  StrategyContext context_;
  ServerPlan plan_;
  GradientUpdate update_;
  // Workers: one over the arena; servers that update: one per bucket.
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  std::vector<float> copy_;  // of the piece in work
};

}  // namespace

std::unique_ptr<Strategy> make_parameter_server(const Arm& arm, StrategyContext context) {
  return std::make_unique<ParameterServer>(arm, std::move(context));
}

}  // namespace kolo::train
