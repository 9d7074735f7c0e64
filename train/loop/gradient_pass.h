// Gradient pass: forward and backward over a worker's share of an iteration.
//
// The share may be cut into *micro-batches*, which need less memory. Their gradients are added up.
// The reducer gets each sum during the last backward, so no gradient is sent before. The sum
// equals the gradient of the whole share, except that batch normalisation sees one micro-batch at a
// time.
//
// Batch normalisation may be over the micro-batches of all workers: normalisation_sums.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tensor/network.h"
#include "train/data/batch_plan.h"
#include "train/data/loader.h"
#include "train/loop/gradient_reducer.h"
#include "train/loop/normalisation_sums.h"
#include "train/loop/straggler.h"

namespace kolo::train {

struct GradientPassSettings {
  std::int64_t micro_batch = 0;  // samples; 0: the whole share
  double label_smoothing = 0;
  std::optional<double> straggler = {};  // the factor, if this worker is one
  // For --sync-batch-norm: the workers, or in a pipeline the replicas of this stage, that sum their
  // statistics; null: each uses its own. Nothing else uses this communicator.
  Communicator* normalising = nullptr;
  Timeline* timeline = nullptr;  // null: nothing is recorded
  // Timeout of one stage; 0: the communicator's. In a pipeline each receive waits this long times
  // the number of stages.
  std::chrono::milliseconds timeout{0};
};

// How a worker gets its gradients.
class TrainingPass {
 public:
  TrainingPass() = default;
  virtual ~TrainingPass() = default;
  TrainingPass(const TrainingPass&) = delete;
  TrainingPass& operator=(const TrainingPass&) = delete;

  struct Result {
    tensor::Outcome outcome;
    // Seconds of computing, without communication.
    double forward = 0;
    double backward = 0;
    double communication = 0;       // seconds that the reducer does not count
    double waiting_for_stages = 0;  // the part of `communication` spent waiting for other stages
    // Bytes that the reducer does not count, as the transport counted them and by the formula:
    // messages between stages, and sums of batch normalisation.
    Traffic moved, formula;
  };
  // Passes the final gradients to the reducer. Calls `check_loss` with the loss of each micro-batch
  // before its backward.
  virtual Result run(const Minibatch& batch, const std::function<void(double)>& check_loss) = 0;
};

// The sums of the gradients of micro-batches.
class GradientSums {
 public:
  GradientSums(tensor::Parameters& parameters, GradientReducer& reducer)
      : parameters_(parameters), reducer_(reducer) {}
  // Adds a final gradient of one micro-batch. In the last micro-batch, writes the sum to the arena
  // and passes it to the reducer.
  void take(tensor::ParameterId id, bool is_first, bool is_last);

 private:
  tensor::Parameters& parameters_;
  GradientReducer& reducer_;
  std::vector<float>
      sums_;  // of the micro-batches so far, laid out as the arena; empty if there is only one
};

// Forward and backward of the whole model. One thread calls it. All references are borrowed.
class GradientPass final : public TrainingPass {
 public:
  GradientPass(tensor::Network& network, GradientReducer& reducer,
               const GradientPassSettings& settings);

  // Does nothing if `batch` has no samples, except for the sums of batch normalisation.
  Result run(const Minibatch& batch, const std::function<void(double)>& check_loss) override;

 private:
  void forward(const Minibatch& batch, OrderRange part, Result& result,
               const std::function<void(double)>& check_loss);
  void backward(bool is_first, bool is_last, Result& result);

  tensor::Network& network_;
  GradientReducer& reducer_;
  GradientPassSettings settings_;
  ComputeClock clock_;
  GradientSums sums_;
  NormalisationSums normalisation_;
};

}  // namespace kolo::train
