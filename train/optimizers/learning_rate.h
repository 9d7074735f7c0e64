// Learning rate as a pure function of the iteration.
//
// Linear scaling and warm-up as in Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet
// in 1 Hour", 2017. The rate is given for a reference batch and is proportional to the global
// batch. During warm-up it rises in equal steps from almost zero to the full rate. Then it is
// constant, falls by steps, follows half a cosine to zero, or a polynomial: the rest of the
// training to the power of `power`.
#pragma once

#include <cstdint>
#include <string_view>

namespace kolo::train {

enum class Decay { constant, step, cosine, polynomial };
// "constant", "step", "cosine", "polynomial"; throws std::invalid_argument, listing these, for
// anything else.
Decay decay_from(std::string_view name);
std::string_view name_of(Decay decay);

struct LearningRateSettings {
  float base = 0.1f;  // rate for a global batch of `reference_batch`
  std::int64_t reference_batch = 256;
  std::int64_t global_batch = 256;
  std::int64_t warmup_iterations = 0;
  std::int64_t total_iterations = 1;  // of the whole training, warm-up included
  Decay decay = Decay::cosine;
  std::int64_t step_iterations = 0;  // Decay::step: iterations between two steps, warm-up included
  float step_factor = 0.1f;          // Decay::step: factor of each step
  float power = 2;                   // Decay::polynomial
  bool operator==(const LearningRateSettings&) const = default;
};

// A plain value. Equal settings give equal rates on every rank and server.
class LearningRate {
 public:
  // Throws std::invalid_argument for invalid rates, batches or counts.
  explicit LearningRate(const LearningRateSettings& settings);

  // base * global_batch / reference_batch: the rate after warm-up.
  float peak() const;
  // The rate of iteration 0, 1, ...; after the last iteration, the rate of the last.
  float at(std::int64_t iteration) const;

  const LearningRateSettings& settings() const { return settings_; }

 private:
  LearningRateSettings settings_;
};

}  // namespace kolo::train
