#pragma once

// Network: a model with its parameters and its memory, as used by a trainer.
//
//   Parameters list;
//   auto model = std::make_unique<MyModel>(list, 10);  // layers register their parameters
//   Network network(std::move(model), std::move(list), {32, 32, 3},
//                   make_backend("onednn", 2), seed);
//   Outcome outcome = network.forward({images, labels, 64.0}, Mode::training);
//   network.backward(hook);  // then network.parameters().gradients() is complete
//
// The batch size may change from one forward to the next. One thread at a time. Networks in one
// process share nothing.

#include <memory>
#include <span>

#include "tensor/arena.h"
#include "tensor/autograd.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/softmax_cross_entropy.h"

namespace kolo::tensor {

// Interface of a model: its layers are members, and forward() connects them.
class Model {
 public:
  virtual ~Model() = default;
  // images: N, H, W, C. Returns logits: N, classes. Must use the same parameters in the same order
  // for every batch.
  virtual Value forward(Tape& tape, const Value& images) = 0;
};

// One batch. Its memory is borrowed for the call of forward (in training, until backward returns).
struct Batch {
  std::span<const float> images;         // N, H, W, C, plain
  std::span<const std::int32_t> labels;  // N; negative: padding, see softmax_cross_entropy
  double divisor = 0;          // divisor of the loss; 0: the number of non-negative labels
  double label_smoothing = 0;  // see softmax_cross_entropy
};

class Network {
 public:
  // Runs the model once without data to find the order of execution. Then allocates the arenas and
  // fills them from `seed`. `image` is H, W, C.
  Network(std::unique_ptr<Model> model, Parameters parameters, const Shape& image,
          std::unique_ptr<Backend> backend, std::uint64_t seed);
  ~Network();

  // Mode::training keeps the activations for backward; Mode::evaluation keeps nothing. Calls
  // `before_use` on this thread for each parameter, in order of use, before it is read.
  Outcome forward(const Batch& batch, Mode mode, const UseHook& before_use = {});
  // Call once after a forward in Mode::training. Calls `hook` on this thread for each parameter
  // whose gradient is final, in arena order.
  void backward(const GradientHook& hook = {});
  // The logits of the last forward: N, classes. Valid until the next forward.
  std::span<const float> logits() const;

  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  Backend& backend() { return *backend_; }
  const Shape& image() const { return image_; }
  // The fewest values per channel that a normalisation has for one image; the largest integer if
  // the model normalises nothing. Training needs 2 per batch.
  std::int64_t fewest_normalised() const { return fewest_normalised_; }
  // Adds the times of all later training passes to `profile`, which is borrowed; null: to none.
  void set_profile(Profile* profile) { profile_ = profile; }
  // The memory of activations, for statistics.
  const Pool& pool() const { return pool_; }

 private:
  std::unique_ptr<Model> model_;
  Parameters parameters_;
  Shape image_;
  std::unique_ptr<Backend> backend_;
  Pool pool_;
  std::unique_ptr<Tape> tape_;
  Value logits_;
  std::int64_t fewest_normalised_;
  Profile* profile_ = nullptr;
};

}  // namespace kolo::tensor
