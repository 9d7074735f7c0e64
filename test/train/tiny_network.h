// A network without batch norm. Its gradients are sums over samples, for any distribution over
// ranks, so n ranks must give the result of one.
#pragma once

#include "tensor/layers.h"
#include "tensor/network.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/pool.h"
#include "train/data/batch_plan.h"
#include "train/data/random.h"

namespace kolo::test {

inline constexpr std::int64_t kSide = 8;
inline constexpr int kClasses = 5;

class TinyModel final : public tensor::Model {
 public:
  explicit TinyModel(tensor::Parameters& list)
      : first_(list, "first", 3, 8, {3, 1, 1, true}),
        second_(list, "second", 8, 16, {3, 2, 1, true}),
        fc_(list, "fc", 16, kClasses) {}

  tensor::Value forward(tensor::Tape& tape, const tensor::Value& images) override {
    const auto once = tensor::relu(tape, first_(tape, images));
    const auto twice = tensor::relu(tape, second_(tape, once));
    return fc_(tape, tensor::global_average_pool(tape, twice));
  }

 private:
  tensor::Conv2d first_, second_;
  tensor::Linear fc_;
};

inline tensor::Network make_tiny_network(std::uint64_t seed) {
  tensor::Parameters list;
  auto model = std::make_unique<TinyModel>(list);
  return {std::move(model),
          std::move(list),
          {kSide, kSide, 3},
          tensor::make_backend("reference", 1),
          seed};
}

struct Samples {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
};

// Samples that depend only on the range.
inline Samples make_samples(train::OrderRange range) {
  Samples samples;
  for (std::int64_t i = range.begin; i < range.begin + range.count; ++i) {
    train::Random random(11, train::Purpose::test, static_cast<std::uint64_t>(i));
    samples.labels.push_back(static_cast<std::int32_t>(random.below(kClasses)));
    for (std::int64_t e = 0; e < kSide * kSide * 3; ++e)
      samples.images.push_back(random.uniform(-1, 1));
  }
  return samples;
}

}  // namespace kolo::test
