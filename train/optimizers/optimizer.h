// Interface of optimizers, over ranges of a flat arena of parameters.
//
// The state of an element depends on that element only (of LARS: on its layer). So an optimizer can
// hold the whole arena or a server's shard, and can be applied bucket by bucket as gradients
// arrive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/arena.h"

namespace kolo::train {

enum class OptimizerKind : std::uint8_t { sgd, adamw, lars };
// "sgd", "adamw", "lars"; throws std::invalid_argument, listing these, for anything else.
OptimizerKind optimizer_from(std::string_view name);
std::string_view name_of(OptimizerKind kind);

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::sgd;
  float momentum = 0.9f;  // sgd, lars
  float weight_decay = 1e-4f;
  bool has_nesterov = false;  // sgd
  // adamw
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  // lars
  float trust = 1e-3f;
  bool operator==(const OptimizerSettings&) const = default;
};

// One update of a range.
struct UpdateStep {
  float learning_rate = 0;
  std::int64_t number = 1;  // 1 for the first update of these elements, then 2, 3, ...
};

// A parameter of the model.
struct Layer {
  tensor::Range range;
  bool is_matrix = true;  // false: biases, and the parameters of normalisations
};
std::vector<Layer> layers_of(const tensor::Parameters& parameters);

// Numbers that a checkpoint must keep: one per element of the range.
struct OptimizerState {
  std::string_view name;
  std::span<float> values;
};

// Holds the state of the elements [offset, offset + count) of an arena. apply() may run in several
// threads at once as long as their ranges do not overlap.
class Optimizer {
 public:
  // Throws std::invalid_argument for a negative range.
  Optimizer(std::int64_t offset, std::int64_t count);
  virtual ~Optimizer() = default;

  // Updates the elements from `offset` in the arena; `parameters` and `gradients` contain only
  // these. Every element must be updated once per iteration. Throws std::invalid_argument if the
  // range is not within this optimizer's.
  void apply(std::int64_t offset, std::span<float> parameters, std::span<const float> gradients,
             const UpdateStep& step);

  std::int64_t offset() const { return offset_; }
  std::int64_t count() const { return count_; }
  virtual std::vector<OptimizerState> state() = 0;

 private:
  // `first`: from offset(). The sizes are right.
  virtual void update(std::size_t first, std::span<float> parameters,
                      std::span<const float> gradients, const UpdateStep& step) = 0;

  std::int64_t offset_;
  std::int64_t count_;
};

// Makes the optimizer of a range. Throws std::invalid_argument for settings out of range, and if a
// layer is partly in the range and the optimizer needs whole layers (lars).
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, std::int64_t offset,
                                          std::int64_t count, std::span<const Layer> layers);

// True if apply() needs whole layers, so that servers with parts of a layer cannot run it.
bool needs_whole_layers(OptimizerKind kind);

}  // namespace kolo::train
