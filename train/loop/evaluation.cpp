#include "train/loop/evaluation.h"

#include <algorithm>
#include <array>
#include <memory>

#include "train/data/loader.h"
#include "train/loop/gather.h"

namespace kolo::train {
namespace {

constexpr std::int64_t kBatchesPerExchange = 8;

// Sum of losses, number of correct answers, number of samples.
using Counts = std::array<double, 3>;

void add_batch(tensor::Network& network, Loader& loader, Minibatch& batch, Counts& counts) {
  if (!loader.next(batch) || batch.samples.empty()) return;
  const tensor::Outcome outcome =
      network.forward({batch.images, batch.labels, 1.0}, tensor::Mode::evaluation);
  counts[0] += outcome.loss;
  counts[1] += static_cast<double>(outcome.correct);
  counts[2] += static_cast<double>(outcome.samples);
}

std::unique_ptr<Loader> loader_for(const Dataset* data, const BatchPlan& plan, int rank,
                                   int threads, const std::optional<Normalization>& normalization) {
  if (data == nullptr) return nullptr;
  LoaderSettings settings;
  settings.rank = rank;
  settings.is_shuffled = false;
  settings.threads = threads;
  settings.normalization = normalization;
  return std::make_unique<Loader>(*data, plan, settings);
}

}  // namespace

Score evaluate(Communicator& communicator, tensor::Network* network, const Dataset* data,
               const BatchPlan& plan, int loader_threads,
               const std::optional<Normalization>& normalization) {
  const std::unique_ptr<Loader> loader =
      loader_for(data, plan, communicator.rank(), loader_threads, normalization);
  Minibatch batch;
  Counts totals{};
  for (std::int64_t done = 0; done < plan.iterations_per_epoch(); done += kBatchesPerExchange) {
    const std::int64_t end = std::min(done + kBatchesPerExchange, plan.iterations_per_epoch());
    Counts counts{};
    for (std::int64_t i = done; i < end && loader != nullptr; ++i) {
      add_batch(*network, *loader, batch, counts);
    }
    // Sum in rank order, so that the loss has the same bits on all ranks.
    for (const std::vector<double>& row : gather_rows(communicator, counts)) {
      for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += row[i];
    }
  }
  return {totals[0] / totals[2], totals[1] / totals[2], static_cast<std::int64_t>(totals[2])};
}

}  // namespace kolo::train
