#pragma once

// The tape: what forward did, in order; backward walks it from the end.
//
//   Value  a tensor in flight and, during backward, the gradients that its consumers left for it
//   Node   one coarse operation that knows its derivative: convolution, or normalisation + addition
//   + ReLU as one
//
// A node is destroyed as soon as its backward ran, and with it the last hold on the activations
// that only it needed: memory falls while backward proceeds. Without recording (evaluation) no node
// is kept, so activations go as forward proceeds.
//
// Gradients of parameters are overwritten, not accumulated: nothing has to be cleared between
// iterations.

#include <functional>
#include <memory>
#include <vector>

#include "tensor/arena.h"
#include "tensor/tensor.h"

namespace kolo::tensor {

class Backend;
class Tape;

/// A tensor in flight. Held through `Value`.
struct ValueState {
  Tensor data;
  bool needs_gradient = false;
  /// Each consumer's contribution; the gradient is their sum. Nodes that can add on the fly read
  /// them as they are.
  std::vector<Tensor> gradients;
};
using Value = std::shared_ptr<ValueState>;

/// One recorded operation. `backward` finds the output's gradients, leaves the inputs' gradients,
/// and writes the parameters'.
class Node {
 public:
  virtual ~Node() = default;
  virtual void backward(Tape& tape) = 0;
};

enum class Mode : std::uint8_t {
  training,    ///< batch statistics; records nodes
  evaluation,  ///< running statistics; records nothing
  dry          ///< shapes only: checks them and notes the order in which parameters are used
};

/// Called when a parameter's gradient is final: backward will not touch it again.
using GradientHook = std::function<void(ParameterId)>;

/// One forward pass and its backward pass. One thread at a time.
class Tape {
 public:
  /// All three are borrowed and outlive the tape. `backend` may be null for a dry run only.
  Tape(Backend* backend, Parameters& parameters, Pool& pool, Mode mode);

  Mode mode() const { return mode_; }
  bool is_recording() const { return mode_ == Mode::training; }
  bool is_dry() const { return mode_ == Mode::dry; }
  Backend& backend() { return *backend_; }
  Parameters& parameters() { return parameters_; }
  Pool& pool() { return pool_; }

  /// A leaf that needs no gradient: the images.
  Value input(Tensor data);
  /// A new value for a node to fill; without memory in a dry run.
  Value make(const Shape& shape);
  void record(std::unique_ptr<Node> node);
  /// Every use of a parameter in forward; a second use in one tape throws std::invalid_argument.
  void use(ParameterId id);
  /// Parameters in order of use.
  const std::vector<ParameterId>& uses() const { return uses_; }

  /// Runs backward from the last recorded node; `hook` may be empty.
  void backward(const GradientHook& hook);
  /// For nodes: this parameter's gradient is final.
  void finished(ParameterId id);
  /// For nodes: the sum of what consumers left, as one tensor; the value's list is emptied.
  Tensor take_gradient(ValueState& value);

 private:
  Backend* backend_;
  Parameters& parameters_;
  Pool& pool_;
  Mode mode_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<ParameterId> uses_;
  std::vector<bool> is_used_;
  const GradientHook* hook_ = nullptr;
};

}  // namespace kolo::tensor
