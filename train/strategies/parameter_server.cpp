// Parameter server: workers push the gradients of a bucket, and pull their sum or the result of the
// update. A server holds a shard, which is one chunk of every bucket, so all servers have work from
// the first bucket on.
//
// The optimizer runs:
//
//   at the worker  Workers pull sums, and each applies the whole optimizer, as with a ring. This is
//                  the default, because it compares communication only.
//   at the server  Workers pull new parameters. A server holds the parameters and the momentum of
//                  its shard, and updates a piece when its sum is complete, while later pieces
//                  arrive. The work and the momentum exist once, not once per worker.
//
// Both call the same Sgd on ranges. The update of an element depends on that element only, so both
// end with the same bits. Workers pull into the gradients' memory, also when they pull parameters,
// and a server that is also a worker updates a copy: backward may still need the old parameters of
// a layer whose gradient is final. After backward, apply() copies the new ones to their place.
//
// Traffic, w workers and s dedicated servers: a worker sends and receives the gradients once; a
// server w / s times. With a server in each of n workers: 2 (n - 1) / n, as with a ring.
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
      : arm_(arm), context_(std::move(context)) {
    const int size = context_.communicator.size();
    if (size != context_.workers + arm.servers) {
      throw std::invalid_argument(fmt::format(
          "{}: {} and {} need {} ranks, not {}", arm.name(), count_text(context_.workers, "worker"),
          count_text(arm.servers, "dedicated server"), context_.workers + arm.servers, size));
    }
    plan_.everywhere = arm.placement == ServerPlacement::everywhere;
    if (!plan_.everywhere) {
      plan_.servers.resize(static_cast<std::size_t>(arm.servers));
      std::iota(plan_.servers.begin(), plan_.servers.end(), context_.workers);
    }
    if (arm.update_at == UpdateAt::server) {
      if (!arm.is_served()) hold_shard();
    } else if (context_.is_worker()) {
      const auto elements = static_cast<std::int64_t>(context_.parameters.values().size());
      optimizers_.emplace_back(context_.sgd, 0, elements);
    }
  }

  Work exchange(std::size_t i) override {
    const tensor::Range bucket = context_.buckets[i].range;
    float* gradients =
        context_.is_worker() ? part(context_.parameters.gradients(), bucket).data() : nullptr;
    ServerUpdate update;
    if (arm_.update_at == UpdateAt::server && is_server()) {
      update = [this, i](std::size_t first, std::span<std::byte> sums) {
        update_piece(i, static_cast<std::int64_t>(first), sums);
      };
    }
    return context_.communicator.push_pull_async(
        {gradients, static_cast<std::size_t>(bucket.count), ElementType::kFloat32},
        {gradients, static_cast<std::size_t>(bucket.count), ElementType::kFloat32}, ReduceOp::kSum,
        plan_, update);
  }

  void apply(std::size_t i) override {
    if (!context_.is_worker()) return;
    const tensor::Range bucket = context_.buckets[i].range;
    const std::span<float> values = part(context_.parameters.values(), bucket);
    const std::span<float> pulled = part(context_.parameters.gradients(), bucket);
    if (arm_.update_at == UpdateAt::server) {
      std::memcpy(values.data(), pulled.data(), values.size_bytes());
    } else {
      optimizers_.front().apply(bucket.begin, values, pulled, learning_rate_);
    }
  }

  Traffic traffic(std::int64_t elements) const override {
    const double bytes = static_cast<double>(elements) * sizeof(float);
    const double workers = context_.workers;
    if (plan_.everywhere) {
      const double moved = 2 * (workers - 1) / workers * bytes;
      return {moved, moved};
    }
    if (context_.is_worker()) return {bytes, bytes};
    const double moved = workers * bytes / arm_.servers;
    return {moved, moved};
  }

 private:
  bool is_server() const { return plan_.everywhere || !context_.is_worker(); }
  int shards() const { return plan_.everywhere ? context_.workers : arm_.servers; }
  int shard() const {
    return plan_.everywhere ? context_.communicator.rank()
                            : context_.communicator.rank() - context_.workers;
  }

  // One optimizer per bucket, for this server's chunk of it.
  void hold_shard() {
    if (!is_server()) return;
    for (const Bucket& bucket : context_.buckets) {
      const auto count = static_cast<std::size_t>(bucket.range.count);
      optimizers_.emplace_back(
          context_.sgd,
          bucket.range.begin + static_cast<std::int64_t>(chunk_begin(count, shards(), shard())),
          static_cast<std::int64_t>(chunk_count(count, shards(), shard())));
    }
  }

  // Replaces the sum of a piece of bucket `i` by the new parameters.
  void update_piece(std::size_t i, std::int64_t first, std::span<std::byte> sums) {
    const std::size_t count = sums.size() / sizeof(float);
    const tensor::Range piece{context_.buckets[i].range.begin + first,
                              static_cast<std::int64_t>(count)};
    std::span<float> values = part(context_.parameters.values(), piece);
    if (plan_.everywhere) {
      copy_.assign(values.begin(), values.end());
      values = copy_;
    }
    auto* numbers = reinterpret_cast<float*>(sums.data());
    optimizers_[i].apply(piece.begin, values, {numbers, count}, learning_rate_);
    std::memcpy(numbers, values.data(), values.size_bytes());
  }

  Arm arm_;
  StrategyContext context_;
  ServerPlan plan_;
  std::vector<Sgd> optimizers_;  // workers: one over the arena; servers that update: one per bucket
  std::vector<float> copy_;      // of the piece in work
};

}  // namespace

std::unique_ptr<Strategy> make_parameter_server(const Arm& arm, StrategyContext context) {
  return std::make_unique<ParameterServer>(arm, std::move(context));
}

}  // namespace kolo::train
