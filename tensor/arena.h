#pragma once

// Arena: all parameters in one flat array, and all gradients in another with the same offsets.
//
// The arrays are in the reverse order of execution, so gradients become final from front to back
// while backward runs. So a bucket of gradients is a range, communication copies nothing, a
// checkpoint is a dump, and an optimizer is one loop. Buffers (running statistics: state that is
// not trained) have their own array.
//
// - name, shape: as in torchvision's state_dict (OIHW for convolution weights), for import and
//   export.
// - range: position of a parameter in the arrays. It begins on a multiple of 16 elements. The gaps
//   stay zero.
// - order inside the range: plain, but convolution weights are stored as HWIO. Then each tap of the
//   window is the right-hand matrix of a multiplication. Export and import convert them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/shape.h"

namespace kolo::tensor {

// Elements [begin, begin + count) of an arena.
struct Range {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t end() const { return begin + count; }
};

// Initial values of a parameter. They come from kolo's own generator, which gives the same numbers
// on every platform. It is seeded by (seed, name), so the order of registration does not matter.
enum class Initial : std::uint8_t {
  zero,
  one,
  kaiming_normal_fan_out,  // normal, deviation sqrt(2 / (out * kh * kw)): convolutions
  uniform_fan_in           // uniform in +-1 / sqrt(fan_in): torch's default for weights and biases
                           // of linear layers and convolutions (see Parameters::add)
};

struct Parameter {
  std::string name;
  Shape shape;  // torchvision's: OIHW, [out][in], [channels]
  Initial initial = Initial::zero;
  std::int64_t fan_in = 0;  // for uniform_fan_in
  Range range;
};

struct Buffer {
  std::string name;
  Shape shape;
  float initial = 0;
  Range range;
};

using ParameterId = int;  // index in order of registration
using BufferId = int;     // likewise

// The list of parameters and buffers that layers register, and their memory. First register all,
// then call lay_out once.
class Parameters {
 public:
  Parameters();
  ~Parameters();
  Parameters(Parameters&&) noexcept;
  Parameters& operator=(Parameters&&) noexcept;

  // Throws std::invalid_argument if the name is in use, or after lay_out.
  ParameterId add(std::string name, const Shape& shape, Initial initial, std::int64_t fan_in = 0);
  BufferId add_buffer(std::string name, const Shape& shape, float initial);

  // Allocates the arenas. `order` has every parameter once, from front to back. Memory is zero.
  void lay_out(std::span<const ParameterId> order);
  // Fills parameters and buffers with their initial values; gradients with zero.
  void initialize(std::uint64_t seed);

  // In order of registration. This is torchvision's order if the model registers in that order.
  std::span<const Parameter> list() const;
  std::span<const Buffer> buffer_list() const;
  // Ids from the front of the arena to its back: the order in which gradients become final.
  std::span<const ParameterId> arena_order() const;
  // Number of trainable elements, gaps not counted.
  std::int64_t count() const;
  // Throws std::invalid_argument for an unknown name.
  ParameterId find(std::string_view name) const;

  // The flat arrays, gaps included: equal lengths for values and gradients.
  std::span<float> values();
  std::span<const float> values() const;
  std::span<float> gradients();
  std::span<const float> gradients() const;
  std::span<float> buffers();
  std::span<const float> buffers() const;

  float* value(ParameterId id);
  float* gradient(ParameterId id);
  float* buffer(BufferId id);

  // Copies a parameter's values or gradients in torchvision's order (OIHW); sizes must match
  // exactly.
  void export_values(ParameterId id, std::span<float> out) const;
  void export_gradients(ParameterId id, std::span<float> out) const;
  void import_values(ParameterId id, std::span<const float> in);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kolo::tensor
