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
// A network may be one stage of a pipeline: some layers, whose input is the output of the stage
// before. Then several micro-batches may be between forward and backward, each in a *slot*.
//
// The batch size may change from one forward to the next. One thread at a time. Networks in one
// process share nothing.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tensor/arena.h"
#include "tensor/autograd.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/softmax_cross_entropy.h"

namespace kolo::tensor {

// Interface of a model: its layers are members, and forward() connects them.
class Model {
 public:
  virtual ~Model() = default;
  // images: N, H, W, C. Returns logits: N, classes. (Of a stage: any input and output whose first
  // dimension is N.) Must use the same parameters in the same order for every batch.
  virtual Value forward(Tape& tape, const Value& images) = 0;
};

// Properties of a model that need no data.
struct Outline {
  Shape output;                        // of one sample
  std::int64_t fewest_normalised = 0;  // see Network
};
// `input`: the shape of one sample. `parameters`: those that the model has registered.
Outline outline_of(Model& model, Parameters& parameters, const Shape& input);

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
  // fills them from `seed`. `image` is H, W, C; of a stage, the shape of its input for one sample.
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

  // --- a stage of a pipeline ---

  // The shape of the output for one sample.
  const Shape& output_shape() const { return output_shape_; }
  // Returns the output for `samples` samples, which stays valid until the backward or the next
  // forward of the slot. `input` is borrowed until then. `has_gradient`: backward computes the
  // gradient of the input.
  std::span<const float> forward_stage(std::size_t slot, std::span<const float> input,
                                       std::int64_t samples, Mode mode, bool has_gradient = false,
                                       const UseHook& before_use = {});
  // The last stage, after forward_stage: the loss of the slot's output; see Batch.
  Outcome loss(std::size_t slot, std::span<const std::int32_t> labels, double divisor,
               double label_smoothing = 0);
  // `output_gradient`: d loss / d output; empty after loss(). Returns the gradient of the input,
  // valid until the next forward_stage or backward_stage of the slot; empty without `has_gradient`.
  std::span<const float> backward_stage(std::size_t slot, std::span<const float> output_gradient,
                                        const GradientHook& hook = {});

  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }
  Backend& backend() { return *backend_; }
  const Shape& image() const { return image_; }
  // The fewest values per channel that a normalisation has for one image; the largest integer if
  // the model normalises nothing. Training needs 2 per batch.
  std::int64_t fewest_normalised() const { return fewest_normalised_; }
  // Lengths of the sums over replicas in a training pass, in their order: what another replica must
  // add to, at least zeros, if it has no samples for a pass.
  std::vector<std::size_t> lengths_of_sums() const;
  // Adds the times of all later training passes to `profile`, which is borrowed; null: to none.
  void set_profile(Profile* profile) { profile_ = profile; }
  // Batch normalisations of all later training passes use the mean and variance over all replicas,
  // as torch.nn.SyncBatchNorm does. Empty: those of this network's batch only.
  void set_sum_over_replicas(SumOverReplicas sum) { sum_ = std::move(sum); }
  // The memory of activations, for statistics.
  const Pool& pool() const { return pool_; }

 private:
  std::unique_ptr<Model> model_;
  Parameters parameters_;
  Shape image_;
  std::unique_ptr<Backend> backend_;
  Pool pool_;
  struct Pass {
    std::unique_ptr<Tape> tape;
    Value input, output;
    Tensor input_gradient;
  };
  Pass& begin_pass(std::size_t slot, const float* input, std::int64_t samples, Mode mode,
                   const UseHook& before_use, bool has_gradient);
  // The slot after its forward. Throws std::invalid_argument; `next`: what needs it.
  Pass& finished_pass(std::size_t slot, const char* next);

  Shape output_shape_;
  std::vector<Pass> passes_;  // one per slot; forward() uses the first
  std::int64_t fewest_normalised_;
  std::vector<std::int64_t> normalised_channels_;
  Profile* profile_ = nullptr;
  SumOverReplicas sum_;
};

}  // namespace kolo::tensor
