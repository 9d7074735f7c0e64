#pragma once

// A model with its memory: what a trainer holds.
//
//   Parameters list;
//   auto model = std::make_unique<MyModel>(list, 10);            // layers register their
//   parameters Network network(std::move(model), std::move(list), {32, 32, 3},
//   make_backend("onednn", 2), seed); Outcome outcome = network.forward({images, labels, 64.0},
//   Mode::training); network.backward(hook);                                      //
//   network.parameters().gradients() is ready
//
// The batch size may change from one forward to the next. One thread at a time; several networks in
// one process do not share anything.

#include <memory>
#include <span>

#include "tensor/arena.h"
#include "tensor/autograd.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/softmax_cross_entropy.h"

namespace kolo::tensor {

/// The part that a model's author writes: layers as members, and how they follow one another.
class Model {
 public:
  virtual ~Model() = default;
  /// images: N, H, W, C. Returns logits: N, classes. Must use the same parameters in the same order
  /// for every batch.
  virtual Value forward(Tape& tape, const Value& images) = 0;
};

/// One batch, borrowed for the call of forward (training: until backward has returned).
struct Batch {
  std::span<const float> images;         ///< N, H, W, C, plain
  std::span<const std::int32_t> labels;  ///< N; negative: padding, see softmax_cross_entropy
  double divisor = 0;                    ///< of the loss; 0: the number of real labels
};

class Network {
 public:
  /// Runs the model dry once to find the order of execution, lays out the arenas, fills them from
  /// `seed`. `image` is H, W, C.
  Network(std::unique_ptr<Model> model, Parameters parameters, const Shape& image,
          std::unique_ptr<Backend> backend, std::uint64_t seed);
  ~Network();

  /// Mode::training keeps what backward needs; Mode::evaluation keeps nothing.
  Outcome forward(const Batch& batch, Mode mode);
  /// After a training forward, once. `hook` is called on this thread whenever a parameter's
  /// gradient is final, in arena order.
  void backward(const GradientHook& hook = {});
  /// Of the last forward: N, classes. Valid until the next forward.
  std::span<const float> logits() const;

  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  Backend& backend() { return *backend_; }
  const Shape& image() const { return image_; }
  /// The activations' memory, to be watched.
  const Pool& pool() const { return pool_; }

 private:
  std::unique_ptr<Model> model_;
  Parameters parameters_;
  Shape image_;
  std::unique_ptr<Backend> backend_;
  Pool pool_;
  std::unique_ptr<Tape> tape_;
  Value logits_;
};

}  // namespace kolo::tensor
