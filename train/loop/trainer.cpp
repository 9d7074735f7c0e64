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

constexpr double kNoteSeconds = 0.2;  // between two progress notes

double& part_of(IterationRecord& iteration, Part part) {
  return iteration.parts[static_cast<std::size_t>(part)];
}

// Hash of an (iteration, sample) pair. Hashes are summed, so the order of pairs and their
// distribution over ranks do not matter.
std::uint64_t order_mark(std::size_t iteration, std::int64_t sample) {
  return mix(mix(iteration) ^ static_cast<std::uint64_t>(sample));
}

// Collective. Returns nullopt if each rank has the whole model.
std::optional<Communicator> split_if_pipeline(const PipelinePlace& place,
                                              Communicator& communicator, int color) {
  if (place.stages == 1) return std::nullopt;
  return communicator.split(color);
}

}  // namespace

Trainer::Trainer(const Options& options, Communicator& communicator, Observer& observer)
    : communicator_(communicator),
      observer_(observer),
      setup_(options, communicator),
      buckets_(plan_buckets(setup_.network().parameters(),
                            bucket_sizes(options.arms.front().sync,
                                         {options.first_bucket_bytes, options.bucket_bytes}))),
      replicas_(split_if_pipeline(setup_.place(), communicator, setup_.place().stage)),
      stages_(split_if_pipeline(setup_.place(), communicator, setup_.place().replica)),
      strategy_(make_strategy(setup_.arm(), context())),
      guard_(exchanging(), setup_.network().parameters(), replicas()) {
  if (setup_.arm().is_served()) {
    set_up_keys();
  } else {
    reducer_ = make_reducer(setup_.arm(), *strategy_, context(), !options.progress_thread);
    data_parallel_ = dynamic_cast<DataParallelReducer*>(reducer_.get());
  }
  set_up_loader();
  if (!options.save.empty()) {
    const bool is_local = setup_.arm().local_steps > 0;
    stop_vote_.emplace(communicator, setup_.arm().is_served() ? "this epoch"
                                     : is_local               ? "the next average"
                                                              : "this iteration");
  }
  resume();
  set_up_pass();
  note_.epochs = setup_.epochs();
  note_.iterations = setup_.iterations();
}

int Trainer::replicas() const {
  return setup_.place().stages > 1 ? setup_.place().replicas : setup_.options().ranks;
}

StrategyContext Trainer::context() {
  const Options& o = setup_.options();
  const bool is_invariant = o.reproducibility == Reproducibility::kInvariant;
  StrategyContext context{exchanging(), setup_.network().parameters(),
                          replicas(),   setup_.optimizer_settings(),
                          buckets_,     is_invariant,
                          o.gradients};
  if (stages_) context.stages = &*stages_;
  return context;
}

// With dataparallel rank 0 loads the whole batch of all ranks.
void Trainer::set_up_loader() {
  const bool is_for_all = data_parallel_ != nullptr;
  if (!setup_.is_worker() || (is_for_all && setup_.rank() != 0)) return;
  LoaderSettings settings;
  settings.seed = setup_.options().seed;
  settings.rank = setup_.place().replica;
  settings.has_images = setup_.place().is_first();
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

void Trainer::set_up_pass() {
  const Options& o = setup_.options();
  if (o.has_timeline) {
    timeline_.listen(profile_, setup_.network().parameters());
    timeline_.listen(timeline_profile_, setup_.network().parameters());
  }
  if (reducer_) {
    reducer_->set_timeline(&timeline_);
    reducer_->set_rank(setup_.rank());
  }
  if (o.has_sync_batch_norm) normalising_ = exchanging().split(setup_.is_worker() ? 0 : 1, 0);
  if (!setup_.is_worker()) return;
  GradientPassSettings settings;
  settings.micro_batch = o.micro_batch;
  settings.label_smoothing = o.label_smoothing;
  settings.timeline = &timeline_;
  settings.timeout = o.timeout;
  if (normalising_ && normalising_->size() > 1) settings.normalising = &*normalising_;
  if (o.straggle.rank == setup_.rank()) settings.straggler = o.straggle.factor;
  if (!replicas_) {
    pass_ = std::make_unique<GradientPass>(setup_.network(), *reducer_, settings);
    return;
  }
  auto pass = std::make_unique<PipelinePass>(communicator_, setup_.network(), *reducer_,
                                             setup_.place(), settings);
  pipeline_ = pass.get();
  pass_ = std::move(pass);
}

void Trainer::begin_timeline() {
  if (setup_.options().has_timeline && done() + 2 >= setup_.iterations())
    timeline_.begin(fmt::format("iteration {}", done() + 1));
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
    // Between two averages, the workers of local-sgd do not wait for each other.
    const int steps = std::max(1, setup_.arm().local_steps);
    const Clock::time_point voting = Clock::now();
    const bool is_last =
        !key_communicator_ && (number % steps == 0 || number == end) && is_stop_requested();
    const double vote_seconds = seconds_since(voting);
    const std::int64_t every = setup_.options().hash_every;
    const bool is_due = every > 0 && number % every == 0 && !setup_.arm().has_different_replicas();
    const bool is_checked = number == setup_.iterations() || is_due;
    // An evaluation follows, a checkpoint, or a vote, before which nothing may be in flight.
    const bool is_complete = is_checked || is_last || number == end ||
                             (stop_vote_ && setup_.arm().sync == Sync::prioritized);
    iterations_.push_back(setup_.is_worker() ? train_iteration(is_complete) : serve_iteration());
    iterations_.back().wall += vote_seconds;
    part_of(iterations_.back(), Part::exposed) += vote_seconds;
    iterations_.back().exchange.in_flight += vote_seconds;
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
  begin_timeline();
  const Clock::time_point start = Clock::now();
  if (loader_ && !loader_->next(data_parallel_ != nullptr ? whole_ : batch_))
    throw std::logic_error("the data ended before the last iteration");
  part_of(iteration, Part::data) = seconds_since(start);
  timeline_.add("data", start, Clock::now());
  if (key_reducer_ != nullptr)
    key_reducer_->set_samples(static_cast<std::int64_t>(batch_.samples.size()));
  const CommunicatorStatistics before = stages_ ? stages_->statistics() : CommunicatorStatistics{};
  reducer_->begin(step());
  if (data_parallel_ != nullptr) scatter_batch();
  for (const std::int64_t sample : batch_.samples) {
    if (setup_.place().is_first())  // the others have the same samples
      order_hash_ += order_mark(static_cast<std::size_t>(done()), sample);
  }
  const TrainingPass::Result result = forward_and_backward(iteration);
  iteration.exchange = reducer_->finish(is_complete);
  iteration.exchange.moved += result.moved;
  if (stages_) iteration.exchange.moved += moved_between(before, stages_->statistics());
  iteration.exchange.formula += result.formula;
  iteration.exchange.in_flight += result.communication;
  part_of(iteration, Part::exposed) +=
      iteration.exchange.in_forward + iteration.exchange.in_backward + iteration.exchange.waiting;
  part_of(iteration, Part::optimizer) = iteration.exchange.optimizer;
  iteration.wall = seconds_since(start);
  timeline_.end();
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
  restore_state({communicator_, exchanging()}, setup_, *strategy_, optimizers());
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
  if (setup_.options().has_sync_batch_norm) share_statistics();
  save_checkpoint({communicator_, exchanging()}, setup_, *strategy_, optimizers(), done());
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

TrainingPass::Result Trainer::forward_and_backward(IterationRecord& iteration) {
  if (batch_.samples.empty()) reducer_->all_zero();  // a share of a short last batch
  const bool is_profiled = setup_.options().has_profile && is_counted();
  setup_.network().set_profile(is_profiled         ? &profile_
                               : timeline_.is_on() ? &timeline_profile_
                                                   : nullptr);
  const TrainingPass::Result result =
      pass_->run(batch_, [this](double loss) { require_finite(loss); });
  part_of(iteration, Part::forward) = result.forward;
  part_of(iteration, Part::backward) = result.backward;
  part_of(iteration, Part::exposed) = result.communication;
  iteration.waiting_for_stages = result.waiting_for_stages;
  iteration.samples = result.outcome.samples;
  iteration.loss = result.outcome.loss;
  iteration.correct = result.outcome.correct;
  return result;
}

void Trainer::require_finite(double loss) const {
  if (std::isfinite(loss)) return;
  const Options& o = setup_.options();
  const bool is_exact = o.gradients.format == GradientFormat::float32;
  throw std::runtime_error(fmt::format(
      "rank {}: the training loss is {} at iteration {}, training has diverged; lower --lr (now "
      "{:g}), or give it a longer --warmup-epochs{}",
      setup_.rank(), loss, done() + 1, o.lr, is_exact ? "" : ", or compare with --compress none"));
}

IterationRecord Trainer::serve_iteration() {
  IterationRecord iteration;
  const Clock::time_point start = Clock::now();
  begin_timeline();
  reducer_->begin(step());
  reducer_->all_ready();
  iteration.exchange = reducer_->finish();
  timeline_.end();
  part_of(iteration, Part::exposed) = iteration.exchange.waiting;
  iteration.wall = seconds_since(start);
  settle_parts(iteration);
  return iteration;
}

}  // namespace kolo::train
