// Trainer: results of epochs and of the run.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "train/experiment/prediction.h"
#include "train/loop/evaluation.h"
#include "train/loop/gather.h"
#include "train/loop/hash.h"
#include "train/loop/process_usage.h"
#include "train/loop/seconds.h"
#include "train/loop/trainer.h"
#include "transports/settings.h"

namespace kolo::train {
namespace {

constexpr std::size_t kRecentIterations = 5;  // used for the speed shown during training

}  // namespace

void Trainer::finish_epoch(int epoch, std::int64_t first_iteration) {
  // The loss and the samples of each iteration of the epoch, then correct answers and samples.
  std::vector<double> mine;
  double correct = 0, samples = 0;
  for (auto i = static_cast<std::size_t>(first_iteration); i < iterations_.size(); ++i) {
    mine.push_back(iterations_[i].loss);
    mine.push_back(static_cast<double>(iterations_[i].samples));
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
  for (std::size_t i = 0; 2 * i + 2 < sums.size(); ++i) {
    const auto in_epoch = begin + static_cast<std::int64_t>(i);
    const auto weight = static_cast<double>(setup_.train_plan().global(in_epoch).count);
    const double loss = sums[2 * i] * weight;  // the sum over the trained samples
    record.train_loss += loss / sums.back();
    // ps:backup leaves out samples of slow workers.
    record_.step_losses.push_back(loss / std::max(1.0, sums[2 * i + 1]));
  }
  record.train_accuracy = sums[sums.size() - 2] / sums.back();
  record.training_seconds = training_seconds_;
  record.learning_rate = setup_.learning_rate().at(record.iterations - 1);
  if (epoch == setup_.epochs() || epoch % setup_.options().eval_every == 0) evaluate_epoch(record);
  record_.epochs.push_back(record);
  if (setup_.rank() == 0) observer_.epoch_ended(record);
}

// Each worker has its own running statistics during training. All evaluate with those of rank 0, as
// PyTorch's DDP does. Normalising together, they are equal, but a worker without samples in a pass
// misses it. The last worker never does: no share is larger than its own.
void Trainer::share_statistics() {
  const int last = replicas() - 1;
  const int root = setup_.options().has_sync_batch_norm ? last : 0;
  exchanging().broadcast(setup_.network().parameters().buffers(), root);
}

void Trainer::evaluate_epoch(EpochRecord& epoch) {
  note("evaluating");
  const Clock::time_point start = Clock::now();
  share_statistics();
  const int threads = setup_.options().loader_threads;
  const Score score =
      pipeline_ != nullptr
          ? evaluate_pipeline(communicator_, *pipeline_, setup_.place(), *setup_.test_data(),
                              setup_.test_plan(), threads)
          : evaluate(communicator_, setup_.is_worker() ? &setup_.network() : nullptr,
                     setup_.test_data(), setup_.test_plan(), threads);
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
  const double workers = setup_.train_plan().ranks();  // assumes that all are as fast as this one
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
  RankRecord mine = summarize(iterations_, o.skip_steps);
  mine.is_worker = setup_.is_worker();
  mine.peak_mib = peak_resident_mib();
  for (Optimizer* const optimizer : optimizers()) {
    for (const OptimizerState& state : optimizer->state())
      mine.optimizer_mib += static_cast<double>(state.values.size_bytes()) / (1 << 20);
  }
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
  if (pipeline_ != nullptr) {
    last_hash_ =
        hash_of_stages(communicator_, setup_.place(), setup_.network().parameters().values());
  }
  if (o.has_timeline) record_.timeline = gather_timeline(communicator_, timeline_);
  if (setup_.rank() == 0) describe(order);
}

void Trainer::describe(std::uint64_t order) {
  const Options& o = setup_.options();
  record_.arm = setup_.arm().name();
  record_.seed = o.seed;
  record_.formula =
      formula_of(setup_.arm(), o.reproducibility == Reproducibility::kInvariant && o.ranks > 2);
  if (o.gradients.format == GradientFormat::top_k && setup_.arm().stages > 0) {
    record_.formula +=
        fmt::format("; of gradients {:g} % of the elements, 8 bytes each, to all others",
                    100 * o.gradients.sent_part);
  } else if (o.gradients.format == GradientFormat::top_k) {
    record_.formula = fmt::format(
        "each of n workers sends {:g} % of the elements of each bucket, 8 bytes each, to all "
        "others",
        100 * o.gradients.sent_part);
  } else if (o.gradients.format != GradientFormat::float32) {
    record_.formula +=
        fmt::format("; gradients in 2 bytes each{}",
                    setup_.arm().update_at == UpdateAt::shard ? ", parameters in 4" : "");
  }
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
  record_.counted_iterations =
      counted_iterations(static_cast<std::int64_t>(iterations_.size()), o.skip_steps);
  for (const IterationRecord& one : iterations_) record_.step_seconds.push_back(one.wall);
  if (o.has_profile)
    record_.layers =
        layer_records(profile_, setup_.network().parameters(), record_.counted_iterations);
  if (const GradientUpdate* update = strategy_->gradient_update()) {
    record_.updates_clipped = static_cast<double>(update->statistics().clipped);
    record_.updates_skipped = static_cast<double>(update->statistics().skipped);
  }
  record_.final_hash = hex(last_hash_);
  record_.replica_checks = guard_.checks();
  record_.training_seconds = training_seconds_;
  record_.stages = setup_.arm().stages;
  record_.micro_batches =
      static_cast<int>(micro_batches(setup_.train_plan().local(0, 0).count, o.micro_batch).size());
  const auto network = network_of(read_settings().shape);
  if (network && pipeline_ == nullptr && !o.has_sync_batch_norm) {
    const PredictedIteration predicted = predict(record_, setup_.arm(), *network);
    record_.predicted_step_seconds = predicted.seconds;
    record_.predicted_exposed = predicted.exposed;
  }
}

}  // namespace kolo::train
