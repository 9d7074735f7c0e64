// Images are NHWC and weights HWIO. oneDNN's kernels need the weights in a blocked format, a
// different one for each pass, so they are reordered before or after each pass. This costs less
// than 1 % of a step: only layers with large images, thus few weights, use these kernels (for the
// others see taps.h).

#include "tensor/kernels/onednn/convolution.h"

#include <tuple>
#include <unordered_map>

#include "tensor/kernels/onednn/version.h"

namespace kolo::tensor::onednn {

namespace {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

auto key(const Conv2dShape& c) {
  return std::tuple(c.batch, c.in_h, c.in_w, c.in, c.out, c.kernel, c.stride, c.padding);
}
using Key = decltype(key(Conv2dShape{}));

// The types of the input, the weights and the output in memory. A result is in float32.
struct Types {
  memory::data_type x, weight, y;
};

ConvolutionDescription describe(const Conv2dShape& c, Types types) {
  return {{{c.batch, c.in, c.in_h, c.in_w}, types.x, memory::format_tag::nhwc},
          {{c.out, c.in, c.kernel, c.kernel}, types.weight, memory::format_tag::any},
          {{c.batch, c.out, c.out_h(), c.out_w()}, types.y, memory::format_tag::nhwc},
          {c.stride, c.stride},
          {c.padding, c.padding}};
}

memory::desc plain_weight(const Conv2dShape& c) {
  return {{c.out, c.in, c.kernel, c.kernel}, memory::data_type::f32, memory::format_tag::hwio};
}

// Scratch memory that grows on demand. All primitives share it, since only one runs at a time.
class Scratch {
 public:
  memory shaped(const memory::desc& description, const dnnl::engine& engine) {
    const std::size_t bytes = description.get_size();
    if (bytes > size_) {
      block_ = std::make_unique<Line[]>(bytes / sizeof(Line) + 1);
      size_ = bytes;
    }
    return {description, engine, block_.get()};
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::unique_ptr<Line[]> block_;
  std::size_t size_ = 0;
};

// One pass: the kernel, and the reorders between plain weights and its format.
struct Pass {
  dnnl::primitive kernel;
  dnnl::reorder reorder;
  memory::desc x, y, weight, scratchpad;
};

struct Primitives {
  memory::desc plain;
  Pass forward, backward_data, backward_weight;
};

}  // namespace

struct Convolutions::State {
  explicit State(Precision precision)
      : operand(precision == Precision::float32 ? memory::data_type::f32
                                                : memory::data_type::bf16) {}

  const memory::data_type operand;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, Primitives> known;
  Scratch weight, scratchpad;

  memory view(const memory::desc& description, const void* data) {
    return {description, engine, const_cast<void*>(data)};
  }

  dnnl::reorder reorder(const memory::desc& from, const memory::desc& to) {
    return dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to));
  }

  Primitives make(const Conv2dShape& shape) {
    constexpr auto kFloat = memory::data_type::f32;
    const ConvolutionDescription d = describe(shape, {operand, operand, kFloat});
    const ConvolutionDescription to_x = describe(shape, {kFloat, operand, operand});
    const ConvolutionDescription to_weight = describe(shape, {operand, kFloat, operand});
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto forward = forward_description(engine, d, attr);
    const auto data = backward_data_description(engine, to_x, attr, forward);
    const auto weights = backward_weights_description(engine, to_weight, attr, forward);
    const memory::desc plain = plain_weight(shape);
    return {
        plain,
        {dnnl::convolution_forward(forward), reorder(plain, forward.weights_desc()), d.x, d.y,
         forward.weights_desc(), forward.scratchpad_desc()},
        {dnnl::convolution_backward_data(data), reorder(plain, data.weights_desc()), to_x.x, to_x.y,
         data.weights_desc(), data.scratchpad_desc()},
        {dnnl::convolution_backward_weights(weights), reorder(weights.diff_weights_desc(), plain),
         to_weight.x, to_weight.y, weights.diff_weights_desc(), weights.scratchpad_desc()}};
  }

  const Primitives& find(const Conv2dShape& shape) {
    const auto found = known.find(key(shape));
    if (found != known.end()) return found->second;
    return known.emplace(key(shape), make(shape)).first->second;
  }

  void run(const Pass& pass, Arguments arguments) {
    arguments.emplace(DNNL_ARG_SCRATCHPAD, scratchpad.shaped(pass.scratchpad, engine));
    pass.kernel.execute(stream, arguments);
    stream.wait();
  }

  memory reordered(const Pass& pass, const memory::desc& plain, const float* from) {
    memory to = weight.shaped(pass.weight, engine);
    pass.reorder.execute(stream, {{DNNL_ARG_FROM, view(plain, from)}, {DNNL_ARG_TO, to}});
    return to;
  }
};

Convolutions::Convolutions(Precision precision) : state_(std::make_unique<State>(precision)) {}
Convolutions::~Convolutions() = default;

void Convolutions::forward(const Conv2dShape& shape, const void* x, const float* weight, float* y) {
  State& s = *state_;
  const Primitives& p = s.find(shape);
  s.run(p.forward, {{DNNL_ARG_SRC, s.view(p.forward.x, x)},
                    {DNNL_ARG_WEIGHTS, s.reordered(p.forward, p.plain, weight)},
                    {DNNL_ARG_DST, s.view(p.forward.y, y)}});
}

void Convolutions::backward_data(const Conv2dShape& shape, const float* weight, const void* dy,
                                 float* dx) {
  State& s = *state_;
  const Primitives& p = s.find(shape);
  s.run(p.backward_data, {{DNNL_ARG_DIFF_DST, s.view(p.backward_data.y, dy)},
                          {DNNL_ARG_WEIGHTS, s.reordered(p.backward_data, p.plain, weight)},
                          {DNNL_ARG_DIFF_SRC, s.view(p.backward_data.x, dx)}});
}

void Convolutions::backward_weight(const Conv2dShape& shape, const void* x, const void* dy,
                                   float* weight_gradient) {
  State& s = *state_;
  const Primitives& p = s.find(shape);
  const memory blocked = s.weight.shaped(p.backward_weight.weight, s.engine);
  s.run(p.backward_weight, {{DNNL_ARG_SRC, s.view(p.backward_weight.x, x)},
                            {DNNL_ARG_DIFF_DST, s.view(p.backward_weight.y, dy)},
                            {DNNL_ARG_DIFF_WEIGHTS, blocked}});
  p.backward_weight.reorder.execute(
      s.stream, {{DNNL_ARG_FROM, blocked}, {DNNL_ARG_TO, s.view(p.plain, weight_gradient)}});
  s.stream.wait();
}

}  // namespace kolo::tensor::onednn
