// Stochastic gradient descent with momentum and weight decay, over ranges of a flat arena.
//
// Same arithmetic as torch.optim.SGD, per element (dampening 0):
//
//   d = gradient + weight_decay * parameter
//   v = momentum * v + d                       (v starts at zero, so the first v is d)
//   parameter -= learning_rate * (has_nesterov ? d + momentum * v : v)
//
// The update of an element depends on that element only. So an optimizer can hold the whole arena
// or a server's shard, and can be applied bucket by bucket as gradients arrive. Cost: one pass, 12
// bytes read and 8 written per element, and 4 bytes of memory per element for v.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kolo::train {

struct SgdSettings {
  float momentum = 0.9f;
  float weight_decay = 1e-4f;
  bool has_nesterov = false;
  bool operator==(const SgdSettings&) const = default;
};

// Holds the momentum of the elements [offset, offset + count) of an arena. apply() may run in
// several threads at once as long as their ranges do not overlap.
class Sgd {
 public:
  // Throws std::invalid_argument for a negative range, negative momentum or weight decay, or
  // Nesterov without momentum.
  Sgd(const SgdSettings& settings, std::int64_t offset, std::int64_t count);

  // Updates the elements from `offset` in the arena; `parameters` and `gradients` contain only
  // these. Every element must be updated once per iteration. Throws std::invalid_argument if the
  // range is not within this optimizer's.
  void apply(std::int64_t offset, std::span<float> parameters, std::span<const float> gradients,
             float learning_rate);

  const SgdSettings& settings() const { return settings_; }
  std::int64_t offset() const { return offset_; }
  std::int64_t count() const { return static_cast<std::int64_t>(velocity_.size()); }
  // The momentum buffer, one number per element of the range.
  std::span<const float> velocity() const { return velocity_; }

 private:
  SgdSettings settings_;
  std::int64_t offset_;
  std::vector<float> velocity_;
};

}  // namespace kolo::train
