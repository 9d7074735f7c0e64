#include "tensor/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "tensor/memory.h"
#include "tensor/random.h"

namespace kolo::tensor {

namespace {

constexpr std::int64_t kAlignment = 16;  // elements: a cache line, and a vector of the widest kind

// Zeroed floats.
class Floats {
 public:
  Floats() = default;
  explicit Floats(std::int64_t count)
      : memory_(allocate_block(static_cast<std::size_t>(count) * sizeof(float))),
        count_(static_cast<std::size_t>(count)) {}
  std::span<float> span() { return {reinterpret_cast<float*>(memory_.get()), count_}; }
  std::span<const float> span() const {
    return {reinterpret_cast<const float*>(memory_.get()), count_};
  }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t count_ = 0;
};

std::span<float> part(std::span<float> all, Range range) {
  return all.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.count));
}

std::int64_t aligned(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

// Calls visit(position in torchvision's order, offset in the arena's) for every element.
template <typename Visit>
void for_each_element(const Parameter& parameter, Visit visit) {
  const Shape& s = parameter.shape;
  if (s.rank() != 4) {
    for (std::int64_t i = 0; i < parameter.range.count; ++i) visit(i, i);
    return;
  }
  std::int64_t position = 0;
  for (std::int64_t o = 0; o < s[0]; ++o) {
    for (std::int64_t i = 0; i < s[1]; ++i) {
      for (std::int64_t tap = 0; tap < s[2] * s[3]; ++tap) {
        visit(position++, (tap * s[1] + i) * s[0] + o);
      }
    }
  }
}

void export_elements(const Parameter& parameter, const float* from, std::span<float> out) {
  if (static_cast<std::int64_t>(out.size()) != parameter.range.count) {
    throw std::invalid_argument(fmt::format("{} has {} elements, not {}", parameter.name,
                                            parameter.range.count, out.size()));
  }
  for_each_element(parameter, [&](std::int64_t position, std::int64_t offset) {
    out[static_cast<std::size_t>(position)] = from[offset];
  });
}

std::vector<float> initial_values(const Parameter& parameter, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(parameter.range.count));
  Random random(seed, parameter.name);
  switch (parameter.initial) {
    case Initial::zero:
      break;
    case Initial::one:
      std::fill(values.begin(), values.end(), 1.0F);
      break;
    case Initial::kaiming_normal_fan_out: {
      const Shape& s = parameter.shape;
      const auto fan_out = static_cast<float>(s[0] * s[2] * s[3]);
      const float deviation = std::sqrt(2.0F / fan_out);
      for (float& value : values) value = deviation * random.normal();
      break;
    }
    case Initial::uniform_fan_in: {
      const float bound = 1.0F / std::sqrt(static_cast<float>(parameter.fan_in));
      for (float& value : values) value = bound * random.uniform();
      break;
    }
  }
  return values;
}

}  // namespace

struct Parameters::State {
  std::vector<Parameter> list;
  std::vector<Buffer> buffer_list;
  std::vector<ParameterId> order;
  Floats values, gradients, buffers;
  bool is_laid_out = false;

  Parameter& at(ParameterId id) {
    if (id < 0 || id >= static_cast<int>(list.size())) {
      throw std::invalid_argument(fmt::format("there is no parameter {} of {}", id, list.size()));
    }
    return list[static_cast<std::size_t>(id)];
  }

  void require_open(const std::string& name) const {
    if (is_laid_out) {
      throw std::invalid_argument(fmt::format("{}: the arenas are laid out already", name));
    }
    const auto is_same = [&name](const auto& known) { return known.name == name; };
    if (std::any_of(list.begin(), list.end(), is_same) ||
        std::any_of(buffer_list.begin(), buffer_list.end(), is_same)) {
      throw std::invalid_argument(fmt::format("two parameters are named {}", name));
    }
  }
};

Parameters::Parameters() : state_(std::make_unique<State>()) {}
Parameters::~Parameters() = default;
Parameters::Parameters(Parameters&&) noexcept = default;
Parameters& Parameters::operator=(Parameters&&) noexcept = default;

ParameterId Parameters::add(std::string name, const Shape& shape, Initial initial,
                            std::int64_t fan_in) {
  state_->require_open(name);
  Parameter parameter{std::move(name), shape, initial, fan_in, {0, shape.count()}};
  state_->list.push_back(std::move(parameter));
  return static_cast<ParameterId>(state_->list.size()) - 1;
}

BufferId Parameters::add_buffer(std::string name, const Shape& shape, float initial) {
  state_->require_open(name);
  state_->buffer_list.push_back({std::move(name), shape, initial, {0, shape.count()}});
  return static_cast<BufferId>(state_->buffer_list.size()) - 1;
}

void Parameters::lay_out(std::span<const ParameterId> order) {
  std::vector<bool> is_placed(state_->list.size(), false);
  std::int64_t end = 0;
  for (const ParameterId id : order) {
    Parameter& parameter = state_->at(id);
    if (is_placed[static_cast<std::size_t>(id)]) {
      throw std::invalid_argument(fmt::format("{} is placed twice in the arena", parameter.name));
    }
    is_placed[static_cast<std::size_t>(id)] = true;
    parameter.range.begin = end;
    end += aligned(parameter.range.count);
  }
  for (std::size_t i = 0; i < is_placed.size(); ++i) {
    if (!is_placed[i]) {
      throw std::invalid_argument(
          fmt::format("{} is registered but the model never uses it", state_->list[i].name));
    }
  }
  std::int64_t buffer_end = 0;
  for (Buffer& buffer : state_->buffer_list) {
    buffer.range.begin = buffer_end;
    buffer_end += aligned(buffer.range.count);
  }
  state_->order.assign(order.begin(), order.end());
  state_->values = Floats(end);
  state_->gradients = Floats(end);
  state_->buffers = Floats(buffer_end);
  state_->is_laid_out = true;
}

void Parameters::initialize(std::uint64_t seed) {
  for (std::size_t i = 0; i < state_->list.size(); ++i) {
    import_values(static_cast<ParameterId>(i), initial_values(state_->list[i], seed));
  }
  for (const Buffer& buffer : state_->buffer_list) {
    std::ranges::fill(part(buffers(), buffer.range), buffer.initial);
  }
  std::ranges::fill(gradients(), 0.0F);
}

std::span<const Parameter> Parameters::list() const { return state_->list; }
std::span<const Buffer> Parameters::buffer_list() const { return state_->buffer_list; }
std::span<const ParameterId> Parameters::arena_order() const { return state_->order; }

std::int64_t Parameters::count() const {
  std::int64_t sum = 0;
  for (const Parameter& parameter : state_->list) sum += parameter.range.count;
  return sum;
}

ParameterId Parameters::find(std::string_view name) const {
  const auto& list = state_->list;
  const auto found = std::find_if(list.begin(), list.end(),
                                  [name](const Parameter& known) { return known.name == name; });
  if (found == list.end()) {
    throw std::invalid_argument(fmt::format("the model has no parameter named {}", name));
  }
  return static_cast<ParameterId>(found - list.begin());
}

std::span<float> Parameters::values() { return state_->values.span(); }
std::span<const float> Parameters::values() const { return std::as_const(*state_).values.span(); }
std::span<float> Parameters::gradients() { return state_->gradients.span(); }
std::span<const float> Parameters::gradients() const {
  return std::as_const(*state_).gradients.span();
}
std::span<float> Parameters::buffers() { return state_->buffers.span(); }
std::span<const float> Parameters::buffers() const { return std::as_const(*state_).buffers.span(); }

float* Parameters::value(ParameterId id) { return values().data() + state_->at(id).range.begin; }
float* Parameters::gradient(ParameterId id) {
  return gradients().data() + state_->at(id).range.begin;
}
float* Parameters::buffer(BufferId id) {
  return buffers().data() + state_->buffer_list[static_cast<std::size_t>(id)].range.begin;
}

void Parameters::export_values(ParameterId id, std::span<float> out) const {
  const Parameter& parameter = state_->at(id);
  export_elements(parameter, values().data() + parameter.range.begin, out);
}

void Parameters::export_gradients(ParameterId id, std::span<float> out) const {
  const Parameter& parameter = state_->at(id);
  export_elements(parameter, gradients().data() + parameter.range.begin, out);
}

void Parameters::import_values(ParameterId id, std::span<const float> in) {
  const Parameter& parameter = state_->at(id);
  if (static_cast<std::int64_t>(in.size()) != parameter.range.count) {
    throw std::invalid_argument(fmt::format("{} has {} elements, not {}", parameter.name,
                                            parameter.range.count, in.size()));
  }
  float* const to = value(id);
  for_each_element(parameter, [&](std::int64_t position, std::int64_t offset) {
    to[offset] = in[static_cast<std::size_t>(position)];
  });
}

}  // namespace kolo::tensor
