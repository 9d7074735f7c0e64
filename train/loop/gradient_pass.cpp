#include "train/loop/gradient_pass.h"

#include <algorithm>
#include <functional>

#include "train/loop/seconds.h"

namespace kolo::train {

void GradientSums::take(tensor::ParameterId id, bool is_first, bool is_last) {
  if (is_first && is_last) return reducer_.gradient_ready(id);
  sums_.resize(parameters_.gradients().size());
  const tensor::Range range = parameters_.list()[static_cast<std::size_t>(id)].range;
  const auto begin = static_cast<std::size_t>(range.begin);
  const auto count = static_cast<std::size_t>(range.count);
  const std::span<float> gradient = parameters_.gradients().subspan(begin, count);
  const std::span<float> sum = std::span(sums_).subspan(begin, count);
  if (is_first) {
    std::ranges::copy(gradient, sum.begin());
    return;
  }
  std::ranges::transform(sum, gradient, is_last ? gradient.begin() : sum.begin(), std::plus{});
  if (is_last) reducer_.gradient_ready(id);
}

GradientPass::GradientPass(tensor::Network& network, GradientReducer& reducer,
                           const GradientPassSettings& settings)
    : network_(network),
      reducer_(reducer),
      settings_(settings),
      clock_(settings.straggler),
      sums_(network.parameters(), reducer),
      normalisation_(network, clock_,
                     {.replicas = settings.normalising, .timeline = settings.timeline}) {}

GradientPass::Result GradientPass::run(const Minibatch& batch,
                                       const std::function<void(double)>& check_loss) {
  Result result;
  const auto samples = static_cast<std::int64_t>(batch.samples.size());
  const std::vector<OrderRange> parts = micro_batches(samples, settings_.micro_batch);
  const std::size_t passes = normalisation_.begin(batch, settings_.micro_batch);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    forward(batch, parts[i], result, check_loss);
    backward(i == 0, i + 1 == parts.size(), result);
  }
  for (std::size_t i = parts.size(); i < passes; ++i) {
    normalisation_.join_forward();
    normalisation_.join_backward();
  }
  result.moved = normalisation_.moved();
  result.formula = normalisation_.formula();
  result.communication = normalisation_.seconds();
  return result;
}

void GradientPass::forward(const Minibatch& batch, OrderRange part, Result& result,
                           const std::function<void(double)>& check_loss) {
  const Clock::time_point start = Clock::now();
  clock_.resume();
  const double reducing = reducer_.seconds_in_forward();
  const double normalising = normalisation_.seconds();
  const std::size_t pixels = batch.images.size() / batch.samples.size();
  const auto begin = static_cast<std::size_t>(part.begin);
  const auto count = static_cast<std::size_t>(part.count);
  const tensor::Outcome outcome = network_.forward(
      {std::span(batch.images).subspan(begin * pixels, count * pixels),
       std::span(batch.labels).subspan(begin, count), static_cast<double>(batch.global_count),
       settings_.label_smoothing},
      tensor::Mode::training, [this](tensor::ParameterId id) { reducer_.before_use(id); });
  check_loss(outcome.loss);
  clock_.settle(reducer_.seconds_in_forward() - reducing);
  result.forward += seconds_since(start) - (reducer_.seconds_in_forward() - reducing) -
                    (normalisation_.seconds() - normalising);
  result.outcome.loss += outcome.loss;
  result.outcome.correct += outcome.correct;
  result.outcome.samples += outcome.samples;
}

void GradientPass::backward(bool is_first, bool is_last, Result& result) {
  if (is_last) reducer_.begin_backward();
  const Clock::time_point start = Clock::now();
  clock_.resume();
  const double reducing = reducer_.seconds_in_backward();
  const double normalising = normalisation_.seconds();
  network_.backward([&](tensor::ParameterId id) {
    clock_.pause();
    sums_.take(id, is_first, is_last);
    clock_.resume();
  });
  clock_.settle();
  result.backward += seconds_since(start) - (reducer_.seconds_in_backward() - reducing) -
                     (normalisation_.seconds() - normalising);
}

}  // namespace kolo::train
