#include "train/experiment/training_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "train/checkpoint/initial_weights.h"
#include "train/count_text.h"
#include "train/data/augmentation.h"
#include "train/experiment/option_consistency.h"
#include "train/loop/gather.h"
#include "train/loop/hash.h"
#include "train/models/model.h"
#include "train/pipeline/pipeline.h"

namespace kolo::train {
namespace {

std::string optimizer_text(const Options& o) {
  const std::string decay = fmt::format("weight decay {:g}", o.weight_decay);
  if (o.optimizer == "adamw") return "AdamW, " + decay;
  return fmt::format("{}, {}momentum {:g}, {}", o.optimizer == "lars" ? "LARS" : "SGD",
                     o.has_nesterov ? "Nesterov's " : "", o.momentum, decay);
}

std::string schedule_text(const LearningRateSettings& rate) {
  switch (rate.decay) {
    case Decay::step:
      return fmt::format("times {:g} every {}", rate.step_factor,
                         count_text(rate.step_iterations, "iteration"));
    case Decay::polynomial:
      return fmt::format("polynomial of power {:g}", rate.power);
    case Decay::constant:
    case Decay::cosine:
      break;
  }
  return std::string(name_of(rate.decay));
}

DatasetOptions dataset_options(const Options& options) {
  return {options.seed, options.train_size, options.test_size, options.image_size};
}

// `row`: as in agree_on_data.
std::string data_text(const std::vector<std::int64_t>& row) {
  return fmt::format("{} training and {} test samples of {} x {} x {} in {} classes", row[0],
                     row[1], row[3], row[4], row[5], row[2]);
}

ModelSettings model_settings(const Options& options, const ImageShape& image,
                             std::int64_t classes) {
  return {{image.height, image.width, image.channels}, classes, stem_from(options.stem)};
}

}  // namespace

std::vector<Stage> stages_of(const Options& options, const Arm& arm, const ImageShape& image,
                             std::int64_t classes) {
  try {
    return cut_into_stages(options.model, model_settings(options, image, classes), arm.stages,
                           options.micro_batch);
  } catch (const std::invalid_argument& error) {
    throw DataError(fmt::format("--strategies: '{}': {}", arm.name(), error.what()));
  }
}

TrainingSetup::TrainingSetup(const Options& options, Communicator& communicator)
    : TrainingSetup(options, &communicator, communicator.rank()) {}

TrainingSetup::TrainingSetup(const Options& options) : TrainingSetup(options, nullptr, 0) {}

TrainingSetup::TrainingSetup(const Options& options, Communicator* communicator, int rank)
    : options_(options),
      rank_(rank),
      place_(rank, options.ranks, std::max(1, options.arms.front().stages)) {
  if (communicator != nullptr) require_equal_options(options, *communicator);
  if (is_worker()) {
    train_data_ = open_dataset(options.dataset, Split::train, dataset_options(options));
    test_data_ = open_dataset(options.dataset, Split::test, dataset_options(options));
  }
  agree_on_data(communicator);
  plan_iterations();
  make_network();
  require_several_values();
  // kolo-train's own launcher has checked them before it started ranks.
  if (communicator != nullptr && rank_ == 0 && options_.events_fd < 0)
    check_checkpoints(options_, *train_data_);
  read_initial(communicator);
  broadcast_initial(communicator);
  note_initial(communicator);
}

void require_full_batch(const Options& options, std::int64_t train_samples) {
  const std::int64_t wanted = options.samples_per_iteration();
  if (wanted <= train_samples) return;
  throw DataError(fmt::format(
      "{} {}: an iteration takes {} of {}, but there {} {}; lower it, or raise --train-size",
      options.global_batch > 0 ? "--global-batch" : "--batch-size",
      options.global_batch > 0 ? options.global_batch : options.batch_size,
      count_text(wanted, "sample"), count_text(options.ranks, "rank"),
      train_samples == 1 ? "is" : "are", train_samples));
}

OptimizerSettings TrainingSetup::optimizer_settings() const {
  OptimizerSettings settings;
  settings.kind = optimizer_from(options_.optimizer);
  settings.momentum = static_cast<float>(options_.momentum);
  settings.weight_decay = static_cast<float>(options_.weight_decay);
  settings.has_nesterov = options_.has_nesterov;
  return settings;
}

void TrainingSetup::agree_on_data(Communicator* communicator) {
  std::vector<std::int64_t> mine(6, 0);
  if (is_worker()) {
    const ImageShape shape = train_data_->shape();
    mine = {train_data_->size(), test_data_->size(), train_data_->classes(),
            shape.height,        shape.width,        shape.channels};
  }
  const auto rows = communicator != nullptr
                        ? gather_rows(*communicator, mine)
                        : std::vector(static_cast<std::size_t>(options_.ranks), mine);
  for (int rank = 1; rank < options_.ranks; ++rank) {
    const auto& theirs = rows[static_cast<std::size_t>(rank)];
    if (theirs == rows[0]) continue;
    throw std::runtime_error(
        fmt::format("the ranks do not see the same data: rank 0 has {}, rank {} has {}; give all "
                    "ranks the same --dataset, with the same files",
                    data_text(rows[0]), rank, data_text(theirs)));
  }
  train_samples_ = rows[0][0];
  test_samples_ = rows[0][1];
  classes_ = rows[0][2];
  image_ = {static_cast<int>(rows[0][3]), static_cast<int>(rows[0][4]),
            static_cast<int>(rows[0][5])};
}

void TrainingSetup::plan_iterations() {
  const std::int64_t global_batch = options_.samples_per_iteration();
  const int replicas = options_.ranks / place_.stages;
  if (test_samples_ < replicas) {
    throw DataError(fmt::format(
        "more ranks than test samples: {} ranks, but {} test samples; use fewer ranks, or "
        "more test samples (--test-size)",
        replicas, test_samples_));
  }
  train_plan_ = std::make_unique<BatchPlan>(train_samples_, global_batch, replicas);
  require_full_batch(options_, train_samples_);
  test_plan_ = std::make_unique<BatchPlan>(test_samples_, global_batch, replicas);
  const std::int64_t per_epoch = train_plan_->iterations_per_epoch();
  iterations_ = per_epoch * options_.epochs;
  if (options_.steps > 0) iterations_ = std::min(iterations_, options_.steps);
  epochs_ = static_cast<int>((iterations_ + per_epoch - 1) / per_epoch);
  LearningRateSettings rate;
  rate.base = static_cast<float>(options_.lr);
  rate.reference_batch = options_.lr_batch;
  rate.global_batch = global_batch;
  const auto warmup = static_cast<std::int64_t>(
      std::llround(options_.warmup_epochs * static_cast<double>(per_epoch)));
  rate.warmup_iterations = std::min(iterations_, warmup);
  rate.total_iterations = iterations_;
  rate.decay = decay_from(options_.lr_schedule);
  const double step_epochs =
      options_.lr_step_epochs > 0 ? options_.lr_step_epochs : static_cast<double>(epochs_) / 3;
  rate.step_iterations =
      std::max<std::int64_t>(1, std::llround(step_epochs * static_cast<double>(per_epoch)));
  rate.step_factor = static_cast<float>(options_.lr_step_factor);
  rate.power = static_cast<float>(options_.lr_power);
  learning_rate_ = std::make_unique<LearningRate>(rate);
}

// Dedicated servers have the model too: its parameters define the buckets, and a server may have to
// update them.
void TrainingSetup::make_network() {
  ModelSettings settings = model_settings(options_, image_, classes_);
  tensor::Parameters whole;
  const auto model = make_model(options_.model, whole, settings);
  parameters_ = whole.count();
  fewest_normalised_ = tensor::outline_of(*model, whole, settings.image).fewest_normalised;
  tensor::Shape input = settings.image;
  if (place_.stages > 1) {
    const Stage mine =
        stages_of(options_, arm(), image_, classes_)[static_cast<std::size_t>(place_.stage)];
    settings.parts = mine.parts;
    input = mine.input;
  }
  tensor::Parameters parameters;
  auto layers = make_model(options_.model, parameters, settings);
  network_ = std::make_unique<tensor::Network>(
      std::move(layers), std::move(parameters), input,
      tensor::make_backend(options_.backend, options_.threads,
                           tensor::precision_from(options_.precision)),
      options_.seed);
}

// A batch normalisation cannot train on one value per channel. Only the first and the last batch
// of an epoch can have different shares.
void TrainingSetup::require_several_values() const {
  if (fewest_normalised_ > 1) return;
  for (const std::int64_t iteration : {std::int64_t{0}, train_plan_->iterations_per_epoch() - 1}) {
    if (iteration >= iterations_) continue;  // --steps ends the run before
    const std::string ranks = ranks_that_normalise_one(iteration);
    if (ranks.empty()) continue;
    throw DataError(fmt::format(
        "model '{}' has a batch normalisation with one value per channel and sample, so training "
        "needs at least 2 samples at a time, but {} only 1 in {} batch of an epoch, which has {}; "
        "change {}--batch-size, --train-size or --ranks",
        options_.model, ranks, iteration == 0 ? "the first" : "the last",
        count_text(train_plan_->global(iteration).count, "sample"),
        options_.micro_batch > 0 ? "--micro-batch, " : ""));
  }
}

// The ranks that normalise over one sample in a pass of this iteration, as "rank 1 has"; empty:
// none.
std::string TrainingSetup::ranks_that_normalise_one(std::int64_t iteration) const {
  std::vector<std::int64_t> of_all;  // samples of all replicas, by pass
  for (int rank = 0; rank < train_plan_->ranks(); ++rank) {
    const auto parts =
        micro_batches(train_plan_->local(iteration, rank).count, options_.micro_batch);
    const bool is_alone = !options_.has_sync_batch_norm || train_plan_->ranks() == 1;
    if (is_alone && !parts.empty() && parts.back().count == 1)
      return fmt::format("rank {} has", rank);
    if (is_alone) continue;
    of_all.resize(std::max(of_all.size(), parts.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) of_all[i] += parts[i].count;
  }
  return std::ranges::find(of_all, 1) == of_all.end() ? "" : "all ranks together have";
}

// Only rank 0 needs the file.
void TrainingSetup::read_initial(Communicator* communicator) {
  if (options_.resume.empty() && options_.load.empty()) return;
  Communicator* const stages = place_.stages > 1 ? communicator : nullptr;
  if (rank_ == 0 || stages != nullptr)
    first_iteration_ =
        read_initial_weights(options_, *train_data_, network_->parameters(), iterations_, stages);
  if (communicator != nullptr)
    communicator->broadcast(std::span<std::int64_t>(&first_iteration_, 1));
}

void TrainingSetup::broadcast_initial(Communicator* communicator) {
  if (communicator == nullptr || place_.stages > 1) return;  // stages draw their own parameters
  communicator->broadcast(network_->parameters().values());
  communicator->broadcast(network_->parameters().buffers());
}

void TrainingSetup::note_initial(Communicator* communicator) {
  initial_hash_ = hex(communicator == nullptr
                          ? hash_of(network_->parameters().values())
                          : hash_of_stages(*communicator, place_, network_->parameters().values()));
}

std::map<std::string, std::string> TrainingSetup::terms() const {
  const Options& o = options_;
  const LearningRateSettings& rate = learning_rate_->settings();
  std::map<std::string, std::string> terms;
  terms["model"] = fmt::format("{}{}, {} parameters, {} classes", o.model,
                               has_stem(o.model) ? ", stem " + o.stem : "", parameters_, classes_);
  const std::string source = !o.load.empty()     ? o.load
                             : !o.resume.empty() ? o.resume
                                                 : fmt::format("seed {}", o.seed);
  terms["initial weights"] = fmt::format("{}, hash {}", source, initial_hash_);
  terms["data"] =
      fmt::format("{}: {} of {} x {} x {}, {}", train_data_->description(),
                  count_text(train_samples_, "training sample"), image_.height, image_.width,
                  image_.channels, count_text(test_samples_, "test sample"));
  if (o.augment != "none") {
    const Augmentation how = augmentation_from(o.augment, image_);
    terms["augmentation"] =
        fmt::format("shifted by up to {}{}", count_text(how.crop_padding, "pixel"),
                    how.has_flip ? ", half of the samples mirrored" : "");
  }
  terms["batch"] = fmt::format("{} over {}", count_text(train_plan_->global_batch(), "sample"),
                               count_text(o.ranks, "worker"));
  if (o.micro_batch > 0) terms["micro-batches"] = count_text(o.micro_batch, "sample") + " each";
  terms["iterations"] = fmt::format("{} in {}", iterations_, count_text(epochs_, "epoch"));
  terms["optimizer"] = optimizer_text(o);
  terms["learning rate"] =
      fmt::format("{:g} per {} samples, peak {:g}, {}, then {}", o.lr, rate.reference_batch,
                  learning_rate_->peak(), count_text(rate.warmup_iterations, "warm-up iteration"),
                  schedule_text(rate));
  if (o.label_smoothing > 0) terms["label smoothing"] = fmt::format("{:g}", o.label_smoothing);
  if (o.has_sync_batch_norm) terms["batch normalisation"] = "over all workers";
  terms["precision"] = o.precision;
  if (o.gradients.format != GradientFormat::float32)
    terms["gradients are sent as"] = format_text(o.gradients);
  if (o.gradients.clip_norm > 0)
    terms["norm of gradients"] = fmt::format("at most {:g}", o.gradients.clip_norm);
  terms["compute"] = fmt::format("{}, threads per worker: {}", o.backend, o.threads);
  if (o.loader_threads > 1) terms["loader threads"] = fmt::format("{}", o.loader_threads);
  if (o.straggle.is_set()) {
    terms["straggler"] =
        fmt::format("rank {} computes {:g} times as long", o.straggle.rank, o.straggle.factor);
  }
  terms["buckets"] = fmt::format("{} bytes, the first {}", o.bucket_bytes, o.first_bucket_bytes);
  terms["order of sums"] = std::string(to_string(o.reproducibility));
  terms["progress"] = o.progress_thread ? "a thread of its own" : "the training thread";
  return terms;
}

}  // namespace kolo::train
