#pragma once

// Parameters and their gradients, each in ONE flat array with the same offsets.
//
// The arrays are laid out in the reverse order of execution, so that gradients become final from
// the front to the back while backward runs: a bucket of gradients is a range, communication copies
// nothing, a checkpoint is a dump, an optimizer is one loop. Buffers (running statistics: state
// that is not trained) have an array of their own.
//
// - name, shape: as in torchvision's state_dict (OIHW for convolution weights): exported, imported.
// - range: where a parameter lies in the arrays; it begins on a multiple of 16, gaps stay zero.
// - order inside the range: plain, but convolution weights lie as HWIO (for each place of the
//   window the right-hand matrix of a multiplication); export and import turn them round.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/shape.h"

namespace kolo::tensor {

/// Elements [begin, begin + count) of an arena.
struct Range {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t end() const { return begin + count; }
};

/// How a parameter starts. All numbers come from a generator of our own, the same on every
/// platform, seeded by (seed, name): they do not depend on the order of registration.
enum class Initial : std::uint8_t {
  zero,
  one,
  kaiming_normal_fan_out,  ///< normal, deviation sqrt(2 / (O * kh * kw)): convolutions
  uniform_fan_in           ///< uniform in +-1 / sqrt(fan_in): linear layers, weight and bias (see
                           ///< Parameters::add)
};

struct Parameter {
  std::string name;
  Shape shape;  ///< torchvision's: OIHW, [out][in], [channels]
  Initial initial = Initial::zero;
  std::int64_t fan_in = 0;  ///< for uniform_fan_in
  Range range;
};

struct Buffer {
  std::string name;
  Shape shape;
  float initial = 0;
  Range range;
};

using ParameterId = int;  ///< index in order of registration
using BufferId = int;     ///< likewise

/// The list of parameters and buffers that layers register, and then their memory. Registered
/// first, laid out once.
class Parameters {
 public:
  Parameters();
  ~Parameters();
  Parameters(Parameters&&) noexcept;
  Parameters& operator=(Parameters&&) noexcept;

  /// Throws std::invalid_argument for a name that is taken, or after lay_out.
  ParameterId add(std::string name, const Shape& shape, Initial initial, std::int64_t fan_in = 0);
  BufferId add_buffer(std::string name, const Shape& shape, float initial);

  /// Fixes the arenas: `order` names every parameter once, front to back. Memory is zero.
  void lay_out(std::span<const ParameterId> order);
  /// Fills parameters and buffers with their initial values; gradients with zero.
  void initialize(std::uint64_t seed);

  /// In order of registration, which is torchvision's order of names when the model registers so.
  std::span<const Parameter> list() const;
  std::span<const Buffer> buffer_list() const;
  /// Ids from the front of the arena to its back: the order in which gradients become final.
  std::span<const ParameterId> arena_order() const;
  /// Number of trainable elements, gaps not counted.
  std::int64_t count() const;
  /// Throws std::invalid_argument for an unknown name.
  ParameterId find(std::string_view name) const;

  /// The flat arrays, gaps included: equal lengths for values and gradients.
  std::span<float> values();
  std::span<const float> values() const;
  std::span<float> gradients();
  std::span<const float> gradients() const;
  std::span<float> buffers();
  std::span<const float> buffers() const;

  float* value(ParameterId id);
  float* gradient(ParameterId id);
  float* buffer(BufferId id);

  /// Copies a parameter's values or gradients in torchvision's order (OIHW); sizes must match
  /// exactly.
  void export_values(ParameterId id, std::span<float> out) const;
  void export_gradients(ParameterId id, std::span<float> out) const;
  void import_values(ParameterId id, std::span<const float> in);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kolo::tensor
