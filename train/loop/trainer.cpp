#include "train/loop/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "train/checkpoint/saved_run.h"
#include "train/experiment/prediction.h"
#include "train/experiment/turns.h"
#include "train/loop/evaluation.h"
#include "train/loop/gather.h"
#include "train/loop/hash.h"
#include "train/loop/process_usage.h"
#include "train/loop/seconds.h"
#include "transports/settings.h"

namespace kolo::train {
namespace {

constexpr double kNoteSeconds = 0.2;          // between two progress notes
constexpr std::size_t kRecentIterations = 5;  // used for the speed shown during training

double& part_of(IterationRecord& iteration, Part part) {
  return iteration.parts[static_cast<std::size_t>(part)];
}

// Hash of an (iteration, sample) pair. Hashes are summed, so the order of pairs and their
// distribution over ranks do not matter.
std::uint64_t order_mark(std::size_t iteration, std::int64_t sample) {
  return mix(mix(iteration) ^ static_cast<std::uint64_t>(sample));
}

StrategyContext strategy_context(TrainingSetup& setup, Communicator& communicator,
                                 const std::vector<Bucket>& buckets) {
  const Options& o = setup.options();
  const bool is_invariant = o.reproducibility == Reproducibility::kInvariant;
  return {communicator, setup.network().parameters(), o.ranks, setup.optimizer_settings(), buckets,
          is_invariant};
}

}  // namespace

Trainer::Trainer(const Options& options, Communicator& communicator, Observer& observer)
    : communicator_(communicator),
      observer_(observer),
      setup_(options, communicator),
      buckets_(plan_buckets(setup_.network().parameters(),
                            bucket_sizes(options.arms.front().sync,
                                         {options.first_bucket_bytes, options.bucket_bytes}))),
      strategy_(make_strategy(setup_.arm(), strategy_context(setup_, communicator, buckets_))),
      guard_(communicator, setup_.network().parameters(), options.ranks) {
  if (setup_.arm().is_served()) {
    set_up_keys();
  } else {
    reducer_ =
        make_reducer(setup_.arm(), *strategy_, strategy_context(setup_, communicator, buckets_),
                     !options.progress_thread);
    data_parallel_ = dynamic_cast<DataParallelReducer*>(reducer_.get());
  }
  set_up_loader();
  if (!options.save.empty()) stop_vote_.emplace(communicator);
  resume();
  if (options.straggle.rank == setup_.rank()) straggler_.emplace(options.straggle.factor);
  note_.epochs = setup_.epochs();
  note_.iterations = setup_.iterations();
}

// With dataparallel rank 0 loads the whole batch of all ranks.
void Trainer::set_up_loader() {
  const bool is_for_all = data_parallel_ != nullptr;
  if (!setup_.is_worker() || (is_for_all && setup_.rank() != 0)) return;
  LoaderSettings settings;
  settings.seed = setup_.options().seed;
  settings.rank = setup_.rank();
  settings.threads = setup_.options().loader_threads;
  settings.augmentation = augmentation_from(setup_.options().augment, setup_.train_data()->shape());
  const BatchPlan& plan = setup_.train_plan();
  settings.first_epoch = setup_.first_iteration() / plan.iterations_per_epoch();
  settings.first_iteration = setup_.first_iteration() % plan.iterations_per_epoch();
  settings.epochs = setup_.epochs() - settings.first_epoch;
  loader_ = std::make_unique<Loader>(
      *setup_.train_data(), is_for_all ? BatchPlan(plan.samples(), plan.global_batch(), 1) : plan,
      settings);
}

void Trainer::set_up_keys() {
  const Arm& arm = setup_.arm();
  const int workers = setup_.options().ranks;
  tensor::Parameters& parameters = setup_.network().parameters();
  key_communicator_.emplace(communicator_.duplicate());
  key_plan_ = plan_of_buckets(buckets_, static_cast<std::int64_t>(parameters.values().size()),
                              workers, arm.servers);
  if (setup_.is_worker()) {
    auto reducer = std::make_unique<KeyReducer>(*key_communicator_, *strategy_, parameters,
                                                buckets_, key_plan_);
    key_reducer_ = reducer.get();
    reducer_ = std::move(reducer);
    return;
  }
  key_service_.emplace(*key_communicator_, setup_, *strategy_, buckets_, key_plan_);
}

RunRecord Trainer::run() {
  note("starting");
  const std::int64_t per_epoch = setup_.train_plan().iterations_per_epoch();
  for (auto epoch = static_cast<int>(done() / per_epoch) + 1; epoch <= setup_.epochs(); ++epoch) {
    const auto first = static_cast<std::int64_t>(iterations_.size());
    take_turn();
    train_epoch(epoch);
    if (done() == setup_.iterations()) stopped_by_ = 0;
    if (stopped_by_ == 0) finish_epoch(epoch, first);
    save_if_due(epoch);
    if (stopped_by_ != 0) return record_;
  }
  collect();
  record_.total_seconds = seconds_since(start_);
  if (setup_.rank() == 0) observer_.finished(record_);
  return record_;
}

void Trainer::take_turn() {
  if (setup_.options().turns_fd < 0) return;
  const Clock::time_point start = Clock::now();
  note(kWaitsForTurn);
  wait_for_turn(setup_.options().turns_fd);
  start_ += Clock::now() - start;
}

void Trainer::train_epoch(int epoch) {
  note_.epoch = epoch;
  const std::int64_t per_epoch = setup_.train_plan().iterations_per_epoch();
  const std::int64_t end = std::min(per_epoch * epoch, setup_.iterations());
  double cpu_before = cpu_seconds();
  if (key_service_) serve_epoch(end);
  while (done() < end && stopped_by_ == 0) {
    if (key_reducer_ != nullptr && key_reducer_->next_iteration() > done()) {
      skip_iteration();
      continue;
    }
    const std::int64_t number = done() + 1;
    const bool is_last = !key_communicator_ && is_stop_requested();
    const std::int64_t every = setup_.options().hash_every;
    const bool is_due = every > 0 && number % every == 0 && !setup_.arm().has_different_replicas();
    const bool is_checked = number == setup_.iterations() || is_due;
    // An evaluation follows, a checkpoint, or a vote, before which nothing may be in flight.
    const bool is_complete = is_checked || is_last || number == end ||
                             (stop_vote_ && setup_.arm().sync == Sync::prioritized);
    iterations_.push_back(setup_.is_worker() ? train_iteration(is_complete) : serve_iteration());
    training_seconds_ += iterations_.back().wall;
    if (is_checked && !setup_.arm().has_different_replicas()) {
      cpu_seconds_ += cpu_seconds() - cpu_before;
      prove_equal();
      cpu_before = cpu_seconds();
    }
    if (iterations_.size() == 1 || seconds_since(noted_) > kNoteSeconds) note("training");
  }
  if (key_communicator_) end_served_epoch();
  cpu_seconds_ += cpu_seconds() - cpu_before;
  if (setup_.arm().has_different_replicas()) prove_equal();
}

// The wait for slower workers is a part of the last iteration.
void Trainer::end_served_epoch() {
  const Clock::time_point start = Clock::now();
  if (key_reducer_ != nullptr) key_reducer_->end_epoch();
  pull_parameters(communicator_, setup_, buckets_);
  if (key_reducer_ == nullptr) return;
  const double seconds = seconds_since(start);
  iterations_.back().wall += seconds;
  part_of(iterations_.back(), Part::exposed) += seconds;
  training_seconds_ += seconds;
}

// The servers have ended the iteration without this worker, so its batch counts for nothing.
void Trainer::skip_iteration() {
  if (!loader_->next(batch_)) throw std::logic_error("the data ended before the last iteration");
  for (const std::int64_t sample : batch_.samples)
    order_hash_ += order_mark(static_cast<std::size_t>(done()), sample);
  key_reducer_->skip();
  iterations_.emplace_back();
}

void Trainer::serve_epoch(std::int64_t end) {
  const std::int64_t first = done();
  const IterationRecord mean = key_service_->serve_epoch(first, end);
  iterations_.resize(static_cast<std::size_t>(end - setup_.first_iteration()), mean);
  training_seconds_ += mean.wall * static_cast<double>(end - first);
}

IterationRecord Trainer::train_iteration(bool is_complete) {
  IterationRecord iteration;
  const Clock::time_point start = Clock::now();
  if (loader_ && !loader_->next(data_parallel_ != nullptr ? whole_ : batch_))
    throw std::logic_error("the data ended before the last iteration");
  part_of(iteration, Part::data) = seconds_since(start);
  if (key_reducer_ != nullptr)
    key_reducer_->set_samples(static_cast<std::int64_t>(batch_.samples.size()));
  reducer_->begin(step());
  if (data_parallel_ != nullptr) scatter_batch();
  for (const std::int64_t sample : batch_.samples) {
    order_hash_ += order_mark(static_cast<std::size_t>(done()), sample);
  }
  forward_and_backward(iteration);
  iteration.exchange = reducer_->finish(is_complete);
  part_of(iteration, Part::exposed) =
      iteration.exchange.in_forward + iteration.exchange.in_backward + iteration.exchange.waiting;
  part_of(iteration, Part::optimizer) = iteration.exchange.optimizer;
  iteration.wall = seconds_since(start);
  settle_parts(iteration);
  return iteration;
}

UpdateStep Trainer::step() const { return {setup_.learning_rate().at(done()), done() + 1}; }

std::int64_t Trainer::done() const {
  return setup_.first_iteration() + static_cast<std::int64_t>(iterations_.size());
}

std::vector<Optimizer*> Trainer::optimizers() {
  return key_service_ ? key_service_->optimizers() : strategy_->optimizers();
}

void Trainer::resume() {
  if (setup_.options().resume.empty()) return;
  restore_optimizers(communicator_, setup_, optimizers());
  if (reducer_) reducer_->resume_from(done());
  if (key_service_) key_service_->resume_from(done());
}

bool Trainer::is_stop_requested() {
  if (!stop_vote_) return false;
  stopped_by_ = stop_vote_->vote();
  return stopped_by_ != 0;
}

// Servers that serve keys have no common iterations, so they end after the epoch.
void Trainer::save_if_due(int epoch) {
  if (key_communicator_ && epoch < setup_.epochs()) is_stop_requested();
  const Options& o = setup_.options();
  const bool is_due = epoch % o.save_every == 0 || epoch == setup_.epochs() || stopped_by_ != 0;
  if (o.save.empty() || !is_due) return;
  note("saving");
  save_checkpoint(communicator_, setup_, optimizers(), done());
}

void Trainer::scatter_batch() {
  const BatchPlan& plan = setup_.train_plan();
  const std::int64_t count = plan.global(done() % plan.iterations_per_epoch()).count;
  const auto pixels = static_cast<std::size_t>(setup_.train_data()->shape().elements());
  data_parallel_->scatter(whole_, count, pixels, batch_);
}

bool Trainer::is_counted() const {
  const std::int64_t all = setup_.iterations() - setup_.first_iteration();
  const std::int64_t counted = counted_iterations(all, setup_.options().skip_steps);
  return static_cast<std::int64_t>(iterations_.size()) >= all - counted;
}

void Trainer::forward_and_backward(IterationRecord& iteration) {
  tensor::Network& network = setup_.network();
  if (batch_.samples.empty()) {  // an empty share of a short last batch
    reducer_->all_zero();
    return;
  }
  if (setup_.options().has_profile && is_counted()) network.set_profile(&profile_);
  const Clock::time_point start = Clock::now();
  const tensor::Outcome outcome = network.forward(
      {batch_.images, batch_.labels, static_cast<double>(batch_.global_count),
       setup_.options().label_smoothing},
      tensor::Mode::training, [this](tensor::ParameterId id) { reducer_->before_use(id); });
  require_finite(outcome.loss);
  if (straggler_) {
    straggler_->computed(seconds_since(start) - reducer_->seconds_in_forward());
    straggler_->settle();
  }
  const Clock::time_point middle = Clock::now();
  reducer_->begin_backward();
  compute_began_ = middle;
  network.backward([this](tensor::ParameterId id) { gradient_ready(id); });
  if (straggler_) {
    straggler_->computed(seconds_since(compute_began_));
    straggler_->settle();
  }
  part_of(iteration, Part::forward) =
      seconds_between(start, middle) - reducer_->seconds_in_forward();
  part_of(iteration, Part::backward) = seconds_since(middle) - reducer_->seconds_in_backward();
  iteration.samples = outcome.samples;
  iteration.loss = outcome.loss;
  iteration.correct = outcome.correct;
}

// A straggler's gradient is final later. Communication does not become slower.
void Trainer::gradient_ready(tensor::ParameterId id) {
  if (straggler_) straggler_->computed(seconds_since(compute_began_));
  reducer_->gradient_ready(id);
  compute_began_ = Clock::now();
}

void Trainer::require_finite(double loss) const {
  if (std::isfinite(loss)) return;
  throw std::runtime_error(fmt::format(
      "rank {}: the training loss is {} at iteration {}, training has diverged; lower --lr "
      "(now {:g}), or give "
      "it a longer --warmup-epochs",
      setup_.rank(), loss, done() + 1, setup_.options().lr));
}

IterationRecord Trainer::serve_iteration() {
  IterationRecord iteration;
  const Clock::time_point start = Clock::now();
  reducer_->begin(step());
  reducer_->all_ready();
  iteration.exchange = reducer_->finish();
  part_of(iteration, Part::exposed) = iteration.exchange.waiting;
  iteration.wall = seconds_since(start);
  settle_parts(iteration);
  return iteration;
}

void Trainer::finish_epoch(int epoch, std::int64_t first_iteration) {
  std::vector<double> mine;  // losses of the epoch's iterations, then correct answers and samples
  double correct = 0, samples = 0;
  for (auto i = static_cast<std::size_t>(first_iteration); i < iterations_.size(); ++i) {
    mine.push_back(iterations_[i].loss);
    correct += static_cast<double>(iterations_[i].correct);
    samples += static_cast<double>(iterations_[i].samples);
  }
  mine.push_back(correct);
  mine.push_back(samples);
  std::vector<double> sums(mine.size(), 0.0);
  for (const std::vector<double>& row : gather_rows(communicator_, mine)) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += row[i];
  }
  EpochRecord record;
  record.epoch = epoch;
  record.iterations = done();
  const std::int64_t begin =
      (setup_.first_iteration() + first_iteration) % setup_.train_plan().iterations_per_epoch();
  for (std::size_t i = 0; i + 2 < sums.size(); ++i) {
    const auto in_epoch = begin + static_cast<std::int64_t>(i);
    const auto weight = static_cast<double>(setup_.train_plan().global(in_epoch).count);
    record.train_loss += sums[i] * weight / sums.back();
    record_.step_losses.push_back(sums[i]);
  }
  record.train_accuracy = sums[sums.size() - 2] / sums.back();
  record.training_seconds = training_seconds_;
  record.learning_rate = setup_.learning_rate().at(record.iterations - 1);
  if (epoch == setup_.epochs() || epoch % setup_.options().eval_every == 0) evaluate_epoch(record);
  record_.epochs.push_back(record);
  if (setup_.rank() == 0) observer_.epoch_ended(record);
}

// Each worker has its own running statistics during training. All evaluate with those of rank 0, as
// PyTorch's DDP does.
void Trainer::evaluate_epoch(EpochRecord& epoch) {
  note("evaluating");
  const Clock::time_point start = Clock::now();
  communicator_.broadcast(setup_.network().parameters().buffers());
  const Score score =
      evaluate(communicator_, setup_.is_worker() ? &setup_.network() : nullptr, setup_.test_data(),
               setup_.test_plan(), setup_.options().loader_threads);
  epoch.is_evaluated = true;
  epoch.test_loss = score.loss;
  epoch.test_accuracy = score.accuracy;
  if (!std::isfinite(score.loss)) {
    epoch.test_loss = std::numeric_limits<double>::quiet_NaN();
    epoch.test_note = why_no_test_loss();
  }
  note_.test_accuracy = score.accuracy;
  record_.evaluation_seconds += seconds_since(start);
}

// The training loss is finite, so the parameters are. Evaluation differs in the statistics of batch
// normalisation.
std::string Trainer::why_no_test_loss() {
  const std::span<const float> statistics = setup_.network().parameters().buffers();
  const bool are_finite = std::ranges::all_of(statistics, [](float x) { return std::isfinite(x); });
  return fmt::format(
      "{}; larger batches per rank give better ones",
      are_finite ? "with the running statistics of batch normalisation a sample's logits overflow"
                 : "the running statistics of batch normalisation have overflowed");
}

void Trainer::prove_equal() {
  const Clock::time_point start = Clock::now();
  last_hash_ = guard_.check(done());
  record_.checking_seconds += seconds_since(start);
}

void Trainer::note(const char* activity) {
  noted_ = Clock::now();
  if (setup_.rank() != 0) return;
  note_.activity = activity;
  note_.iteration = done();
  const std::size_t recent = std::min(kRecentIterations, iterations_.size());
  double seconds = 0, loss = 0, samples = 0;
  for (std::size_t i = iterations_.size() - recent; i < iterations_.size(); ++i) {
    seconds += iterations_[i].wall;
    samples += static_cast<double>(iterations_[i].samples);
    loss += iterations_[i].loss;
  }
  const double workers = setup_.options().ranks;  // assumes that all are as fast as this one
  note_.images_per_second = seconds > 0 ? workers * samples / seconds : 0;
  note_.loss = recent > 0 ? workers * loss / static_cast<double>(recent) : 0;
  observer_.progress(note_);
}

// The servers' counts, at rank 0. Longer staleness counts as the last.
void Trainer::collect_served() {
  if (!key_communicator_) return;
  constexpr std::size_t kLongest = 64;
  std::vector<double> mine(kLongest + 2);
  if (key_service_) {
    const KeyServerStatistics& served = key_service_->statistics();
    mine[0] = static_cast<double>(served.gradients);
    mine[1] = static_cast<double>(served.dropped);
    for (std::size_t i = 0; i < served.staleness.size(); ++i)
      mine[2 + std::min(i, kLongest - 1)] += static_cast<double>(served.staleness[i]);
  }
  record_.staleness.assign(kLongest, 0);
  for (const std::vector<double>& row : gather_rows(communicator_, mine)) {
    record_.gradients_applied += row[0];
    record_.gradients_dropped += row[1];
    for (std::size_t i = 0; i < kLongest; ++i) record_.staleness[i] += row[2 + i];
  }
  while (!record_.staleness.empty() && record_.staleness.back() == 0) record_.staleness.pop_back();
}

void Trainer::collect() {
  const Options& o = setup_.options();
  const std::int64_t all = static_cast<std::int64_t>(iterations_.size());
  RankRecord mine = summarize(iterations_, o.skip_steps);
  mine.is_worker = setup_.is_worker();
  mine.peak_mib = peak_resident_mib();
  const double mine_seconds = training_seconds_;
  const double training_seconds =
      gather_rows(communicator_, std::span<const double>(&mine_seconds, 1))[0][0];
  mine.busy_cores = training_seconds > 0 ? cpu_seconds_ / training_seconds : 0;
  record_.ranks = gather_records(communicator_, mine);
  std::uint64_t order = 0;
  for (const std::int64_t part : gather(communicator_, std::bit_cast<std::int64_t>(order_hash_))) {
    order += std::bit_cast<std::uint64_t>(part);
  }
  collect_served();
  if (setup_.rank() != 0) return;
  record_.arm = setup_.arm().name();
  record_.seed = o.seed;
  record_.formula =
      formula_of(setup_.arm(), o.reproducibility == Reproducibility::kInvariant && o.ranks > 2);
  record_.difference = setup_.arm().difference();
  record_.terms = setup_.terms();
  record_.terms["order of the data"] = "hash " + hex(order);
  record_.transport = std::string(communicator_.transport());
  if (communicator_.size() > 1) record_.terms["transport"] = record_.transport;
  record_.workers = o.ranks;
  record_.servers = setup_.arm().servers;
  record_.classes = static_cast<int>(setup_.classes());
  // Chunks of a bucket differ by one element, so in each bucket two elements may differ from the
  // formula, in each direction.
  record_.allowed_byte_difference =
      2.0 * sizeof(float) * static_cast<double>(buckets_.size()) * o.ranks;
  // Each key has a header in each direction, and its server may tell each worker that it is alive.
  constexpr double kHeaderBytes = 256;
  record_.allowed_byte_difference +=
      kHeaderBytes * static_cast<double>(key_plan_.keys.size()) * o.ranks;
  record_.counted_iterations = counted_iterations(all, o.skip_steps);
  for (const IterationRecord& one : iterations_) record_.step_seconds.push_back(one.wall);
  record_.layers =
      layer_records(profile_, setup_.network().parameters(), record_.counted_iterations);
  record_.final_hash = hex(last_hash_);
  record_.replica_checks = guard_.checks();
  record_.training_seconds = training_seconds_;
  if (const auto network = network_of(read_settings().shape)) {
    const PredictedIteration predicted = predict(record_, setup_.arm(), *network);
    record_.predicted_step_seconds = predicted.seconds;
    record_.predicted_exposed = predicted.exposed;
  }
}

}  // namespace kolo::train
