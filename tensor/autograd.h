#pragma once

// Tape for automatic differentiation: records the operations of forward; backward runs them in
// reverse order.
//
//   Value  a tensor and, during backward, the gradients that its consumers contributed
//   Node   one coarse operation with its derivative: a convolution, or normalisation + addition +
//          ReLU as one
//
// A node is destroyed right after its backward. This releases the activations that only this node
// needed, so memory use falls during backward. In evaluation no node is recorded, so activations
// are released during forward.
//
// Gradients of parameters are overwritten, not accumulated, so they need no clearing between
// iterations.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "tensor/arena.h"
#include "tensor/profile.h"
#include "tensor/tensor.h"

namespace kolo::tensor {

class Backend;
class Tape;

// A tensor that operations produce and consume. Shared through `Value`.
struct ValueState {
  Tensor data;
  bool needs_gradient = false;
  // The contribution of each consumer; the gradient is their sum. Nodes that can add two
  // contributions themselves read this list directly.
  std::vector<Tensor> gradients;
};
using Value = std::shared_ptr<ValueState>;

// One recorded operation. `backward` reads the gradients of the output, appends those of the
// inputs, and writes those of the parameters.
class Node {
 public:
  virtual ~Node() = default;
  virtual void backward(Tape& tape) = 0;
};

enum class Mode : std::uint8_t {
  training,    // batch statistics; records nodes
  evaluation,  // running statistics; records nothing
  dry          // shapes only: checks them and records the order in which parameters are used
};

// Called when a parameter's gradient is final: backward will not touch it again.
using GradientHook = std::function<void(ParameterId)>;

// Called before forward uses a parameter's values.
using UseHook = std::function<void(ParameterId)>;

// Replaces each number by its sum over all networks that normalise together, such as the replicas
// of data-parallel training. All of them make the same calls in the same order.
using SumOverReplicas = std::function<void(std::span<double>)>;

// One forward pass and its backward pass. One thread at a time.
class Tape {
 public:
  // The references are borrowed and must outlive the tape. `backend` may be null in a dry run only.
  // `profile`, if not null, gets the times of a pass in Mode::training. `sum`, if not empty: batch
  // normalisations in Mode::training are over all replicas.
  Tape(Backend* backend, Parameters& parameters, Pool& pool, Mode mode, UseHook before_use = {},
       Profile* profile = nullptr, SumOverReplicas sum = {});

  Mode mode() const { return mode_; }
  bool is_recording() const { return mode_ == Mode::training; }
  bool is_dry() const { return mode_ == Mode::dry; }
  Backend& backend() { return *backend_; }
  Parameters& parameters() { return parameters_; }
  Pool& pool() { return pool_; }

  // A leaf: the images, or the input of a stage.
  Value input(Tensor data);
  // A new value, to be filled by an operation; without memory in a dry run.
  Value make(const Shape& shape);
  // Call it at the end of the operation's forward; `operation` is for the profile.
  void record(std::unique_ptr<Node> node, const Operation& operation);
  // Registers a use of a parameter in forward, before its values are read. Calls the hook for uses.
  // A second use in one tape throws std::invalid_argument.
  void use(ParameterId id);
  // Registers a normalisation of `channels` channels over `values` values each.
  void note_normalised(std::int64_t channels, std::int64_t values) {
    normalised_channels_.push_back(channels);
    fewest_normalised_ = std::min(fewest_normalised_, values);
  }
  // The channels of each normalisation, in the order of forward.
  const std::vector<std::int64_t>& normalised_channels() const { return normalised_channels_; }
  // The fewest values per channel of any normalisation; the largest integer if there is none.
  std::int64_t fewest_normalised() const { return fewest_normalised_; }
  // False: normalisations are over this replica's batch alone.
  bool has_sum_over_replicas() const { return static_cast<bool>(sum_); }
  // Calls SumOverReplicas, outside the times of the profile.
  void sum_over_replicas(std::span<double> values);
  // Parameters in order of use.
  const std::vector<ParameterId>& uses() const { return uses_; }

  // Runs backward from the last recorded node; `hook` may be empty.
  void backward(const GradientHook& hook);
  // For nodes: reports that this parameter's gradient is final.
  void finished(ParameterId id);
  // For nodes: returns the sum of the consumers' gradients, and clears the list of the value.
  Tensor take_gradient(ValueState& value);

 private:
  void call(const std::function<void(ParameterId)>& hook, ParameterId id);
  // Calls `other`, whose time is not that of an operation.
  void outside_profile(const std::function<void()>& other);

  Backend* backend_;
  Parameters& parameters_;
  Pool& pool_;
  Mode mode_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<ParameterId> uses_;
  std::vector<bool> is_used_;
  UseHook before_use_;
  Profile* profile_;
  SumOverReplicas sum_;
  std::vector<std::int64_t> normalised_channels_;
  std::int64_t fewest_normalised_ = std::numeric_limits<std::int64_t>::max();
  const GradientHook* hook_ = nullptr;
};

}  // namespace kolo::tensor
