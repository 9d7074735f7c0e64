#include "tensor/ops/elementwise.h"

#include <utility>

#include "tensor/kernels/kernels.h"

namespace kolo::tensor {

namespace {

// dx = dy where y > 0.
struct ReluNode : Node {
  Value x, y;

  void backward(Tape& tape) override {
    const Tensor dy = tape.take_gradient(*y);
    const Tensor dx = dy.is_sole_owner() ? dy : Tensor(tape.pool(), dy.shape());
    tape.backend().relu_backward(y->data, dy, dx);
    x->gradients.push_back(dx);
  }
};

// da = db = dy, masked by the ReLU if there is one.
struct AddNode : Node {
  Value a, b, y;
  bool has_relu = false;

  void backward(Tape& tape) override {
    Tensor dy = tape.take_gradient(*y);
    if (has_relu) {
      const Tensor masked = dy.is_sole_owner() ? dy : Tensor(tape.pool(), dy.shape());
      tape.backend().relu_backward(y->data, dy, masked);
      dy = masked;
    }
    if (a->needs_gradient) a->gradients.push_back(dy);
    if (b->needs_gradient) b->gradients.push_back(dy);
  }
};

}  // namespace

Value relu(Tape& tape, const Value& x) {
  if (tape.is_dry()) return tape.make(x->data.shape());
  if (!x->needs_gradient) {
    const Value y = tape.make(x->data.shape());
    tape.backend().relu_forward(x->data, y->data);
    y->needs_gradient = false;
    return y;
  }
  auto node = std::make_unique<ReluNode>();
  // In place, unless the memory is borrowed or shared.
  const Value y =
      tape.input(x->data.is_sole_owner() ? x->data : Tensor(tape.pool(), x->data.shape()));
  y->needs_gradient = true;
  tape.backend().relu_forward(x->data, y->data);
  node->x = x;
  node->y = y;
  tape.record(std::move(node), {"relu"});
  return y;
}

Value add(Tape& tape, const Value& a, const Value& b, bool has_relu) {
  require_shape("add", a->data.shape(), b->data.shape());
  const Value y = tape.make(a->data.shape());
  if (tape.is_dry()) return y;
  tape.backend().add_forward(a->data, b->data, has_relu, y->data);
  auto node = std::make_unique<AddNode>();
  node->a = a;
  node->b = b;
  node->y = y;
  node->has_relu = has_relu;
  tape.record(std::move(node), {"add"});
  return y;
}

}  // namespace kolo::tensor
