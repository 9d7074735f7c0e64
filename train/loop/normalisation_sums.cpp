#include "train/loop/normalisation_sums.h"

#include <algorithm>
#include <vector>

#include "train/data/batch_plan.h"
#include "train/loop/seconds.h"
#include "train/strategies/all_reduce.h"

namespace kolo::train {

NormalisationSums::NormalisationSums(tensor::Network& network, ComputeClock& clock,
                                     const NormalisationSettings& settings)
    : network_(network), clock_(clock), settings_(settings) {
  if (settings.replicas == nullptr) return;
  network.set_sum_over_replicas([this](std::span<double> values) { sum(values); });
}

NormalisationSums::~NormalisationSums() { network_.set_sum_over_replicas({}); }

std::size_t NormalisationSums::begin(const Minibatch& batch, std::int64_t micro_batch) {
  const auto samples = static_cast<std::int64_t>(batch.samples.size());
  const std::size_t own = micro_batches(samples, micro_batch).size();
  seconds_ = 0;
  formula_ = {};
  if (settings_.replicas == nullptr) return own;
  before_ = settings_.replicas->statistics();
  const int replicas = settings_.replicas->size();
  const std::int64_t most = (batch.global_count + replicas - 1) / replicas;
  return std::max(own, micro_batches(most, micro_batch).size());
}

void NormalisationSums::sum(std::span<double> values) {
  clock_.pause();
  const Clock::time_point start = Clock::now();
  Communicator& replicas = *settings_.replicas;
  const std::string_view algorithm =
      replicas.algorithm(Collective::kAllReduce, values.size_bytes());
  if (settings_.messages == nullptr) {
    replicas.all_reduce(values);
  } else {
    Work work = replicas.all_reduce_async(values);
    while (!work.test()) settings_.messages->progress();
    work.wait();
  }
  const auto bytes =
      static_cast<double>(all_reduce_sent(replicas, algorithm, values.size()) * sizeof(double));
  formula_ += {bytes, bytes};
  const Clock::time_point end = Clock::now();
  if (settings_.timeline != nullptr)
    settings_.timeline->add("sum of batch normalisation", start, end);
  seconds_ += seconds_between(start, end);
  clock_.resume();
}

void NormalisationSums::add_zeros(std::span<const std::size_t> lengths) {
  clock_.resume();
  for (const std::size_t length : lengths) {
    std::vector<double> zeros(length);
    sum(zeros);
  }
}

void NormalisationSums::join_forward() {
  const std::vector<std::size_t> lengths = network_.lengths_of_sums();
  add_zeros(std::span(lengths).first(lengths.size() / 2));
}

void NormalisationSums::join_backward() {
  const std::vector<std::size_t> lengths = network_.lengths_of_sums();
  add_zeros(std::span(lengths).last(lengths.size() / 2));
}

Traffic NormalisationSums::moved() const {
  if (settings_.replicas == nullptr) return {};
  return moved_between(before_, settings_.replicas->statistics());
}

}  // namespace kolo::train
