#include "train/pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "train/loop/gather.h"
#include "train/loop/hash.h"
#include "train/loop/seconds.h"
#include "train/pipeline/schedule.h"

namespace kolo::train {
namespace {

constexpr std::int64_t kBatchesPerExchange = 8;  // of an evaluation

}  // namespace

PipelinePass::PipelinePass(Communicator& communicator, tensor::Network& network,
                           GradientReducer& reducer, const PipelinePlace& place,
                           const GradientPassSettings& settings)
    : communicator_(communicator),
      network_(network),
      place_(place),
      settings_(settings),
      sums_(network.parameters(), reducer),
      reducer_(reducer),
      input_floats_(static_cast<std::size_t>(network.image().count())),
      output_floats_(static_cast<std::size_t>(network.output_shape().count())),
      clock_(settings.straggler),
      normalisation_(network, clock_,
                     {.replicas = settings.normalising,
                      .messages = &communicator,
                      .timeline = settings.timeline}),
      // One slot for each micro-batch between forward and backward, and one for the next input.
      slots_(static_cast<std::size_t>(place.stages - place.stage) + 1) {
  // A gradient arrives after all later stages have computed.
  patient_.timeout = settings.timeout * place.stages;
}

void PipelinePass::begin(const Minibatch& batch) {
  batch_ = &batch;
  parts_ = micro_batches(static_cast<std::int64_t>(batch.samples.size()), settings_.micro_batch);
  waited_ = 0;
  formula_ = {};
}

PipelinePass::Result PipelinePass::run(const Minibatch& batch,
                                       const std::function<void(double)>& check_loss) {
  Result result;
  begin(batch);
  const CommunicatorStatistics before = communicator_.statistics();
  const std::size_t passes = normalisation_.begin(batch, settings_.micro_batch);
  if (!parts_.empty()) expect_input(0);
  for (const PipelineStep& step : one_forward_one_backward(place_.stage, place_.stages, passes)) {
    if (step.micro_batch >= parts_.size()) {
      step.is_backward ? normalisation_.join_backward() : normalisation_.join_forward();
    } else if (step.is_backward) {
      backward(step.micro_batch, result);
    } else {
      forward(step.micro_batch, check_loss, result);
    }
  }
  for (Slot& one : slots_) {
    wait(one.output_leaves, "wait until outputs are sent");
    wait(one.gradient_leaves, "wait until gradients are sent");
  }
  if (!parts_.empty()) exchange_outcome(result);
  result.moved = moved_between(before, communicator_.statistics());
  result.formula = formula_;
  result.moved += normalisation_.moved();
  result.formula += normalisation_.formula();
  result.waiting_for_stages = waited_;
  result.communication = waited_ + normalisation_.seconds();
  return result;
}

void PipelinePass::expect_input(std::size_t i) {
  if (place_.is_first() || i >= parts_.size()) return;
  Slot& to = slot(i);
  to.input.resize(samples_of(i) * input_floats_);
  to.input_arrives =
      communicator_.receive_async(std::span(to.input), communicator_.rank() - 1, patient_);
  formula_.received += static_cast<double>(to.input.size() * sizeof(float));
}

void PipelinePass::expect_gradient(std::size_t i) {
  if (place_.is_last()) return;
  Slot& to = slot(i);
  to.output_gradient.resize(samples_of(i) * output_floats_);
  to.gradient_arrives = communicator_.receive_async(std::span(to.output_gradient),
                                                    communicator_.rank() + 1, patient_);
  formula_.received += static_cast<double>(to.output_gradient.size() * sizeof(float));
}

std::span<const float> PipelinePass::input_of(std::size_t i) {
  if (!place_.is_first()) return slot(i).input;
  const auto begin = static_cast<std::size_t>(parts_[i].begin);
  return std::span<const float>(batch_->images)
      .subspan(begin * input_floats_, samples_of(i) * input_floats_);
}

void PipelinePass::forward(std::size_t i, const std::function<void(double)>& check_loss,
                           Result& result) {
  Slot& mine = slot(i);
  wait(mine.input_arrives, fmt::format("wait for input {}", i));
  wait(mine.output_leaves, "wait until outputs are sent");
  wait(mine.gradient_leaves, "wait until gradients are sent");
  expect_input(i + 1);
  const Clock::time_point start = Clock::now();
  const double normalising = normalisation_.seconds();
  clock_.resume();
  const std::span<const float> output = network_.forward_stage(
      i % slots_.size(), input_of(i), parts_[i].count, tensor::Mode::training, !place_.is_first(),
      [this](tensor::ParameterId) { communicator_.progress(); });
  if (place_.is_last()) {
    const auto labels =
        std::span(batch_->labels).subspan(static_cast<std::size_t>(parts_[i].begin), samples_of(i));
    const tensor::Outcome outcome =
        network_.loss(i % slots_.size(), labels, static_cast<double>(batch_->global_count),
                      settings_.label_smoothing);
    check_loss(outcome.loss);
    result.outcome.loss += outcome.loss;
    result.outcome.correct += outcome.correct;
  }
  clock_.settle();
  result.forward += seconds_since(start) - (normalisation_.seconds() - normalising);
  note(fmt::format("forward of micro-batch {}", i), start);
  if (place_.is_last()) return;
  mine.output_leaves = communicator_.send_async(output, communicator_.rank() + 1);
  formula_.sent += static_cast<double>(output.size_bytes());
  expect_gradient(i);
}

void PipelinePass::backward(std::size_t i, Result& result) {
  Slot& mine = slot(i);
  wait(mine.gradient_arrives, fmt::format("wait for gradient {}", i));
  wait(mine.gradient_leaves, "wait until gradients are sent");
  const bool is_last = i + 1 == parts_.size();
  if (is_last) reducer_.begin_backward();
  const double reducing = reducer_.seconds_in_backward();
  const double normalising = normalisation_.seconds();
  const Clock::time_point start = Clock::now();
  clock_.resume();
  const std::span<const float> gradient =
      place_.is_last() ? std::span<const float>() : std::span<const float>(mine.output_gradient);
  const std::span<const float> input_gradient =
      network_.backward_stage(i % slots_.size(), gradient, [&](tensor::ParameterId id) {
        clock_.pause();
        sums_.take(id, i == 0, is_last);
        communicator_.progress();
        clock_.resume();
      });
  clock_.settle();
  result.backward += seconds_since(start) - (reducer_.seconds_in_backward() - reducing) -
                     (normalisation_.seconds() - normalising);
  note(fmt::format("backward of micro-batch {}", i), start);
  if (place_.is_first()) return;
  mine.gradient_leaves = communicator_.send_async(input_gradient, communicator_.rank() - 1);
  formula_.sent += static_cast<double>(input_gradient.size_bytes());
}

// The last stage sends the loss and the number of correct answers to the first.
void PipelinePass::exchange_outcome(Result& result) {
  std::array<double, 2> numbers{result.outcome.loss, static_cast<double>(result.outcome.correct)};
  const int first = place_.replica * place_.stages;
  const double bytes = place_.stages > 1 ? sizeof(numbers) : 0;
  Work work;
  if (place_.is_first() && !place_.is_last()) {
    work = communicator_.receive_async(std::span(numbers), first + place_.stages - 1);
    formula_.received += bytes;
  } else if (place_.is_last() && !place_.is_first()) {
    work = communicator_.send_async(std::span<const double>(numbers), first);
    formula_.sent += bytes;
  }
  wait(work, "wait for the loss");
  result.outcome = {};
  if (!place_.is_first()) return;
  result.outcome.loss = numbers[0];
  result.outcome.correct = static_cast<std::int64_t>(numbers[1]);
  result.outcome.samples = static_cast<std::int64_t>(batch_->samples.size());
}

void PipelinePass::wait(Work& work, std::string_view what) {
  if (!work.is_valid()) return;
  const Clock::time_point start = Clock::now();
  work.wait();
  work = {};
  waited_ += seconds_since(start);
  note(what, start);
}

void PipelinePass::note(std::string_view what, Clock::time_point start) {
  if (settings_.timeline != nullptr) settings_.timeline->add(what, start, Clock::now());
}

std::array<double, 3> PipelinePass::evaluate(const Minibatch& batch) {
  begin(batch);
  std::array<double, 3> sums{};
  if (!parts_.empty()) expect_input(0);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Slot& mine = slot(i);
    wait(mine.input_arrives, "");
    wait(mine.output_leaves, "");
    expect_input(i + 1);
    const std::span<const float> output = network_.forward_stage(
        i % slots_.size(), input_of(i), parts_[i].count, tensor::Mode::evaluation);
    if (!place_.is_last()) {
      mine.output_leaves = communicator_.send_async(output, communicator_.rank() + 1);
      continue;
    }
    const auto labels =
        std::span(batch.labels).subspan(static_cast<std::size_t>(parts_[i].begin), samples_of(i));
    const tensor::Outcome outcome = network_.loss(i % slots_.size(), labels, 1.0);
    sums[0] += outcome.loss;
    sums[1] += static_cast<double>(outcome.correct);
    sums[2] += static_cast<double>(outcome.samples);
  }
  for (Slot& one : slots_) wait(one.output_leaves, "");
  return sums;
}

// The arena of a model begins with its last layers, so the hash begins at the last stage.
std::uint64_t hash_of_stages(Communicator& communicator, const PipelinePlace& place,
                             std::span<const float> values) {
  Hasher hasher;
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(&hasher, 1));
  if (!place.is_last()) communicator.receive(bytes, communicator.rank() + 1);
  hasher.add(values);
  if (!place.is_first())
    communicator.send(std::span<const std::byte>(bytes), communicator.rank() - 1);
  return hasher.value();
}

Score evaluate_pipeline(Communicator& communicator, PipelinePass& pass, const PipelinePlace& place,
                        const Dataset& data, const BatchPlan& plan, int loader_threads) {
  LoaderSettings settings;
  settings.rank = place.replica;
  settings.is_shuffled = false;
  settings.threads = loader_threads;
  settings.has_images = place.is_first();
  Loader loader(data, plan, settings);
  Minibatch batch;
  std::array<double, 3> totals{};
  const std::int64_t batches = plan.iterations_per_epoch();
  for (std::int64_t done = 0; done < batches; done += kBatchesPerExchange) {
    std::array<double, 3> counts{};
    for (std::int64_t i = done; i < std::min(done + kBatchesPerExchange, batches); ++i) {
      loader.next(batch);
      const std::array<double, 3> more = pass.evaluate(batch);
      for (std::size_t k = 0; k < counts.size(); ++k) counts[k] += more[k];
    }
    // Sum in rank order, so that the loss has the same bits on all ranks.
    for (const std::vector<double>& row : gather_rows(communicator, counts)) {
      for (std::size_t k = 0; k < totals.size(); ++k) totals[k] += row[k];
    }
  }
  return {totals[0] / totals[2], totals[1] / totals[2], static_cast<std::int64_t>(totals[2])};
}

}  // namespace kolo::train
