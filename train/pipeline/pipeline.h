// Pipeline: model parallelism. Each rank has some layers of the model, a *stage*, and computes all
// samples of its replica, one micro-batch after the other.
//
// A stage sends its output to the next, and the gradient of its input to the one before, in the
// order 1F1B (schedule.h). The gradients of the parameters are summed over the micro-batches in
// their order, so one rank that accumulates the same micro-batches gets the same bits. With several
// replicas, a stage sums its gradients with the same stage of the other replicas: pipelines inside,
// data parallelism between them. With --sync-batch-norm it also sums its statistics with them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"
#include "tensor/network.h"
#include "train/data/loader.h"
#include "train/loop/evaluation.h"
#include "train/loop/gradient_pass.h"
#include "train/loop/normalisation_sums.h"
#include "train/loop/timeline.h"
#include "train/pipeline/place.h"

namespace kolo::train {

// One thread calls it. All references are borrowed.
class PipelinePass final : public TrainingPass {
 public:
  // `communicator`: of all ranks. Stages exchange messages with their neighbours; the last stage
  // also sends the loss to the first.
  PipelinePass(Communicator& communicator, tensor::Network& network, GradientReducer& reducer,
               const PipelinePlace& place, const GradientPassSettings& settings);

  // Collective over the replica. All stages get the same samples; only the first needs images,
  // and only the last needs labels. Only the first stage's result has the outcome.
  Result run(const Minibatch& batch, const std::function<void(double)>& check_loss) override;

  // Collective over the replica, as run(). At the last stage, returns sums over the samples:
  // the loss, the number of correct answers, the number of samples. At others, zeros.
  std::array<double, 3> evaluate(const Minibatch& batch);

 private:
  // The memory of one micro-batch between forward and backward.
  struct Slot {
    std::vector<float> input, output_gradient;
    Work input_arrives, output_leaves, gradient_arrives, gradient_leaves;
  };

  void begin(const Minibatch& batch);
  void forward(std::size_t i, const std::function<void(double)>& check_loss, Result& result);
  void backward(std::size_t i, Result& result);
  std::span<const float> input_of(std::size_t i);
  void expect_input(std::size_t i);
  void expect_gradient(std::size_t i);
  void exchange_outcome(Result& result);
  // Waits for a message, and counts the time as communication.
  void wait(Work& work, std::string_view what);
  // Adds a span from `start` until now to the timeline.
  void note(std::string_view what, Clock::time_point start);
  Slot& slot(std::size_t i) { return slots_[i % slots_.size()]; }
  std::size_t samples_of(std::size_t i) const { return static_cast<std::size_t>(parts_[i].count); }

  Communicator& communicator_;
  tensor::Network& network_;
  PipelinePlace place_;
  GradientPassSettings settings_;
  GradientSums sums_;
  GradientReducer& reducer_;
  std::size_t input_floats_, output_floats_;  // of one sample
  ComputeClock clock_;
  NormalisationSums normalisation_;
  CallOptions patient_;  // of receives, which are posted before the sender begins to compute
  std::vector<Slot> slots_;
  // State of the current iteration.
  const Minibatch* batch_ = nullptr;
  std::vector<OrderRange> parts_;
  double waited_ = 0;
  Traffic formula_;
};

// Returns the hash of the parameters of this stage and all later ones. At the first stage that is
// the whole model. `values`: those of this stage. Collective over the replica.
std::uint64_t hash_of_stages(Communicator& communicator, const PipelinePlace& place,
                             std::span<const float> values);

// Mean loss and accuracy over the test data. Collective over all ranks.
Score evaluate_pipeline(Communicator& communicator, PipelinePass& pass, const PipelinePlace& place,
                        const Dataset& data, const BatchPlan& plan, int loader_threads);

}  // namespace kolo::train
