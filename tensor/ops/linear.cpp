#include "tensor/ops/linear.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "tensor/kernels/kernels.h"

namespace kolo::tensor {

namespace {

// dx = dy weight; dweight = dy' x; dbias = sum of dy over the rows.
struct LinearNode : Node {
  ParameterId weight, bias;
  Value x, y;

  void backward(Tape& tape) override {
    const Tensor dy = tape.take_gradient(*y);
    Parameters& p = tape.parameters();
    const Tensor dx = x->needs_gradient ? Tensor(tape.pool(), x->data.shape()) : Tensor();
    tape.backend().linear_backward(x->data, p.value(weight), dy, p.gradient(weight),
                                   p.gradient(bias), dx);
    tape.finished(bias);
    tape.finished(weight);
    if (x->needs_gradient) x->gradients.push_back(dx);
  }
};

}  // namespace

Value linear(Tape& tape, const Value& x, ParameterId weight, ParameterId bias) {
  const Shape& shape = x->data.shape();
  if (shape.rank() != 2) {
    throw std::invalid_argument(
        fmt::format("linear: the input must be N x features, got {}", shape.text()));
  }
  const auto list = tape.parameters().list();
  const Shape& weights = list[static_cast<std::size_t>(weight)].shape;
  require_shape("linear: weight", {weights[0], shape[1]}, weights);
  require_shape("linear: bias", {weights[0]}, list[static_cast<std::size_t>(bias)].shape);
  tape.use(weight);
  tape.use(bias);
  const Value y = tape.make({shape[0], weights[0]});
  if (tape.is_dry()) return y;

  Parameters& p = tape.parameters();
  tape.backend().linear_forward(x->data, p.value(weight), p.value(bias), y->data);
  auto node = std::make_unique<LinearNode>();
  node->weight = weight;
  node->bias = bias;
  node->x = x;
  node->y = y;
  // Backward has as many for the gradient of the weight, and as many again for that of x.
  const auto forward_flops = static_cast<double>(2 * shape[0] * shape[1] * weights[0]);
  tape.record(std::move(node), {"linear", weight, forward_flops * (x->needs_gradient ? 3 : 2)});
  return y;
}

}  // namespace kolo::tensor
