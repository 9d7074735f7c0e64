// Trainer: one rank's part of a run, the loop over epochs and iterations, for workers and dedicated
// servers.
//
// All ranks make the same calls of the communicator in the same order. A dedicated server computes
// nothing between them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "train/data/loader.h"
#include "train/experiment/training_setup.h"
#include "train/loop/data_parallel_reducer.h"
#include "train/loop/gradient_pass.h"
#include "train/loop/key_reducer.h"
#include "train/loop/key_service.h"
#include "train/loop/metrics.h"
#include "train/loop/observer.h"
#include "train/loop/replica_guard.h"
#include "train/loop/stop_vote.h"
#include "train/loop/timeline.h"
#include "train/pipeline/pipeline.h"

namespace kolo::train {

class Trainer {
 public:
  // Collective: sets up the training. Only rank 0 calls its observer. All references are borrowed.
  Trainer(const Options& options, Communicator& communicator, Observer& observer);

  // Collective: trains, evaluates, checks the replicas. The record is complete on rank 0, which
  // also passes it to its observer.
  RunRecord run();

  // The signal that ended the run early, after a checkpoint; 0: it is complete.
  int stopped_by() const { return stopped_by_; }

 private:
  // Blocks while another arm of the comparison trains.
  void take_turn();
  void train_epoch(int epoch);
  // `is_complete`: all parameters must be up to date at its end.
  IterationRecord train_iteration(bool is_complete);
  IterationRecord serve_iteration();
  void set_up_keys();
  void set_up_loader();
  void set_up_pass();
  // Records the next iteration if it is one of --timeline.
  void begin_timeline();
  void scatter_batch();
  void collect_served();
  void end_served_epoch();
  // A server's epoch where gradients are applied in the order of arrival.
  void serve_epoch(std::int64_t end);
  UpdateStep step() const;  // of the next iteration
  // Iterations done, those before --resume included.
  std::int64_t done() const;
  std::vector<Optimizer*> optimizers();
  void resume();
  // Whether a signal asks to end, which all ranks then do after the next iteration.
  bool is_stop_requested();
  void save_if_due(int epoch);
  // Gives all workers the same running statistics.
  void share_statistics();
  void skip_iteration();
  // True if the current iteration counts for speeds.
  bool is_counted() const;
  TrainingPass::Result forward_and_backward(IterationRecord& iteration);
  void require_finite(double loss) const;
  std::string why_no_test_loss();
  void finish_epoch(int epoch, std::int64_t first_iteration);
  void evaluate_epoch(EpochRecord& epoch);
  void prove_equal();
  void note(const char* activity);
  // The ranks that exchange gradients.
  Communicator& exchanging() { return replicas_ ? *replicas_ : communicator_; }
  int replicas() const;  // the number of those ranks that compute gradients
  StrategyContext context();
  void collect();
  // Fills in the record of the run, at rank 0. `order`: the hash of the data's order.
  void describe(std::uint64_t order);

  Clock::time_point start_ = Clock::now();
  Communicator& communicator_;
  Observer& observer_;
  TrainingSetup setup_;
  std::vector<Bucket> buckets_;
  std::optional<Communicator> replicas_;  // of a pipeline: the ranks with the same stage
  std::optional<Communicator> stages_;    // of a pipeline: the ranks of the same replica
  std::unique_ptr<Strategy> strategy_;
  std::optional<Communicator> key_communicator_;  // of arms whose servers serve keys
  KeyPlan key_plan_;
  std::optional<KeyService> key_service_;         // of a server
  std::unique_ptr<GradientReducer> reducer_;      // null on servers that serve keys
  KeyReducer* key_reducer_ = nullptr;             // the same, of a worker that pushes keys
  DataParallelReducer* data_parallel_ = nullptr;  // the same, of the arm dataparallel
  std::optional<Communicator> normalising_;       // of --sync-batch-norm
  std::unique_ptr<TrainingPass> pass_;            // workers only
  PipelinePass* pipeline_ = nullptr;              // the same, of the arm pipeline
  ReplicaGuard guard_;
  std::optional<StopVote> stop_vote_;  // with --save
  int stopped_by_ = 0;
  std::unique_ptr<Loader> loader_;  // workers only; dataparallel: rank 0 only
  Minibatch batch_;
  Minibatch whole_;  // dataparallel: rank 0's, before it is scattered
  std::vector<IterationRecord> iterations_;
  tensor::Profile profile_;           // of the counted iterations, with --profile
  tensor::Profile timeline_profile_;  // of the iterations of --timeline
  Timeline timeline_;                 // of the last two iterations, with --timeline
  std::uint64_t order_hash_ = 0;      // of the (iteration, sample) pairs of this rank, in any order
  std::uint64_t last_hash_ = 0;
  double cpu_seconds_ = 0;  // spent in training iterations
  double training_seconds_ = 0;
  Clock::time_point noted_;
  ProgressNote note_;
  RunRecord record_;
};

}  // namespace kolo::train
