#include "tensor/ops/conv2d.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "tensor/kernels/kernels.h"

namespace kolo::tensor {

namespace {

// dx = dy (*) rotated weight; dweight = x (*) dy; dbias = sum of dy; (*) is convolution.
struct Conv2dNode : Node {
  Conv2dShape shape;
  ParameterId weight, bias;
  Value x, y;

  void backward(Tape& tape) override {
    y->data = {};
    const Tensor dy = tape.take_gradient(*y);
    Parameters& p = tape.parameters();
    tape.backend().conv2d_backward_weight(shape, x->data, dy, p.gradient(weight),
                                          bias < 0 ? nullptr : p.gradient(bias));
    // Report before computing the gradient of x, so that communication can begin.
    if (bias >= 0) tape.finished(bias);
    tape.finished(weight);
    if (!x->needs_gradient) return;
    const Tensor dx(tape.pool(), x->data.shape());
    tape.backend().conv2d_backward_data(shape, p.value(weight), dy, dx);
    x->gradients.push_back(dx);
  }
};

Conv2dShape checked_shape(const Shape& x, const Shape& weight, const Conv2dSettings& settings) {
  if (x.rank() != 4) {
    throw std::invalid_argument(
        fmt::format("conv2d: the input must be N x H x W x C, got {}", x.text()));
  }
  require_shape("conv2d: weight", {weight[0], x[3], settings.kernel, settings.kernel}, weight);
  const Conv2dShape shape{
      x[0], x[1], x[2], x[3], weight[0], settings.kernel, settings.stride, settings.padding};
  const std::int64_t padded = 2 * settings.padding - settings.kernel;
  if (settings.stride < 1 || settings.padding < 0 || x[1] + padded < 0 || x[2] + padded < 0) {
    throw std::invalid_argument(
        fmt::format("conv2d: a kernel of {} with stride {} and padding {} does not fit input {}",
                    settings.kernel, settings.stride, settings.padding, x.text()));
  }
  return shape;
}

// Operations of forward and backward. Backward has as many as forward for the gradient of the
// weight, and as many again for that of x.
double flops_of(const Conv2dShape& shape, bool has_dx) {
  const auto forward = static_cast<double>(2 * shape.batch * shape.out_h() * shape.out_w() *
                                           shape.out * shape.in * shape.kernel * shape.kernel);
  return forward * (has_dx ? 3 : 2);
}

}  // namespace

Value conv2d(Tape& tape, const Value& x, ParameterId weight, ParameterId bias,
             const Conv2dSettings& settings) {
  const Parameter& parameter = tape.parameters().list()[static_cast<std::size_t>(weight)];
  const Conv2dShape shape = checked_shape(x->data.shape(), parameter.shape, settings);
  tape.use(weight);
  if (bias >= 0) tape.use(bias);
  const Shape out{shape.batch, shape.out_h(), shape.out_w(), shape.out};
  const Value y = tape.make(out);
  if (tape.is_dry()) return y;

  Parameters& p = tape.parameters();
  tape.backend().conv2d_forward(shape, x->data, p.value(weight), bias < 0 ? nullptr : p.value(bias),
                                y->data);
  if (tape.is_recording()) {
    auto node = std::make_unique<Conv2dNode>();
    node->shape = shape;
    node->weight = weight;
    node->bias = bias;
    node->x = x;
    node->y = y;
    tape.record(std::move(node), {"conv2d", weight, flops_of(shape, x->needs_gradient)});
  }
  return y;
}

}  // namespace kolo::tensor
