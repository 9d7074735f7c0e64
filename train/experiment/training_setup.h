// Setup of a rank before the first iteration: data, model, and the check that all ranks agree.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "tensor/network.h"
#include "train/data/batch_plan.h"
#include "train/data/dataset.h"
#include "train/optimizers/learning_rate.h"
#include "train/optimizers/optimizer.h"
#include "train/options.h"
#include "train/pipeline/partition.h"
#include "train/pipeline/place.h"

namespace kolo::train {

// Throws DataError if an iteration needs more samples than there are. The learning rate is scaled
// with the batch, so a batch that cannot be filled would be trained at a wrong rate.
void require_full_batch(const Options& options, std::int64_t train_samples);

// The stages of a pipeline. Throws DataError if the model has fewer parts.
std::vector<Stage> stages_of(const Options& options, const Arm& arm, const ImageShape& image,
                             std::int64_t classes);

class TrainingSetup {
 public:
  // Collective over all ranks. Opens the data (workers only), checks that it is the same on all
  // workers, makes the model, and broadcasts rank 0's parameters and buffers. Throws DataError;
  // std::runtime_error if ranks disagree.
  TrainingSetup(const Options& options, Communicator& communicator);
  // The setup of rank 0 without a communicator. Nothing is compared with other ranks, or sent.
  explicit TrainingSetup(const Options& options);

  const Options& options() const { return options_; }
  const Arm& arm() const { return options_.arms.front(); }
  bool is_worker() const { return rank_ < options_.ranks; }
  int rank() const { return rank_; }

  // Of the arm pipeline; else this rank is a replica of its own.
  const PipelinePlace& place() const { return place_; }

  tensor::Network& network() { return *network_; }
  // Null on dedicated servers.
  const Dataset* train_data() const { return train_data_.get(); }
  const Dataset* test_data() const { return test_data_.get(); }
  const BatchPlan& train_plan() const { return *train_plan_; }
  const BatchPlan& test_plan() const { return *test_plan_; }
  OptimizerSettings optimizer_settings() const;
  const LearningRate& learning_rate() const { return *learning_rate_; }
  std::int64_t iterations() const { return iterations_; }
  int epochs() const { return epochs_; }
  // Iterations that an earlier run has done (--resume).
  std::int64_t first_iteration() const { return first_iteration_; }
  std::int64_t classes() const { return classes_; }

  // The terms that must be equal in all arms of a comparison and are known before training: name to
  // value. The same on every worker.
  std::map<std::string, std::string> terms() const;

 private:
  TrainingSetup(const Options& options, Communicator* communicator, int rank);
  void agree_on_data(Communicator* communicator);
  void plan_iterations();
  void make_network();
  void note_initial(Communicator* communicator);
  void require_several_values() const;
  std::string ranks_that_normalise_one(std::int64_t iteration) const;
  void read_initial(Communicator* communicator);
  void broadcast_initial(Communicator* communicator);

  Options options_;
  int rank_;
  PipelinePlace place_;
  std::unique_ptr<Dataset> train_data_, test_data_;
  std::int64_t train_samples_ = 0, test_samples_ = 0, classes_ = 0;
  ImageShape image_;
  std::unique_ptr<BatchPlan> train_plan_, test_plan_;
  std::unique_ptr<LearningRate> learning_rate_;
  std::int64_t iterations_ = 0;
  std::int64_t first_iteration_ = 0;
  int epochs_ = 0;
  std::unique_ptr<tensor::Network> network_;
  std::int64_t parameters_ = 0;         // of the whole model
  std::int64_t fewest_normalised_ = 0;  // by the whole model, see Network
  std::string initial_hash_;
};

}  // namespace kolo::train
