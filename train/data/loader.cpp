#include "train/data/loader.h"

#include <fmt/format.h>

#include <chrono>
#include <numeric>
#include <utility>

namespace kolo::train {
namespace {

constexpr std::size_t kByteValues = 256;

std::vector<float> normalisation_table(const Dataset& dataset) {
  const Normalization constants = dataset.normalization();
  const auto channels = static_cast<std::size_t>(dataset.shape().channels);
  if (channels > constants.mean.size()) {
    throw std::invalid_argument(fmt::format("Loader: {} has {} channels, at most 3 are supported",
                                            dataset.description(), channels));
  }
  std::vector<float> table(channels * kByteValues);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t value = 0; value < kByteValues; ++value) {
      table[channel * kByteValues + value] =
          (static_cast<float>(value) - constants.mean[channel]) / constants.deviation[channel];
    }
  }
  return table;
}

}  // namespace

Loader::Loader(const Dataset& dataset, const BatchPlan& plan, const LoaderSettings& settings)
    : dataset_(dataset),
      plan_(plan),
      settings_(settings),
      normalised_(normalisation_table(dataset)) {
  if (plan.samples() > dataset.size() || settings.rank < 0 || settings.rank >= plan.ranks() ||
      settings.depth < 1 || settings.epochs < 0 || settings.first_epoch < 0 ||
      settings.timeout_ms <= 0) {
    throw std::invalid_argument(fmt::format(
        "Loader: rank {} of {}, {} of {} samples, depth {}, epochs {} from {}, timeout {} ms",
        settings.rank, plan.ranks(), plan.samples(), dataset.size(), settings.depth,
        settings.epochs, settings.first_epoch, settings.timeout_ms));
  }
  ring_.resize(static_cast<std::size_t>(settings.depth));
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Loader::~Loader() = default;

bool Loader::next(Minibatch& batch) {
  std::unique_lock lock(mutex_);
  const auto has_news = [this] { return ready_ > 0 || is_finished_; };
  if (!changed_.wait_for(lock, std::chrono::milliseconds(settings_.timeout_ms), has_news)) {
    throw DataError(fmt::format("rank {}: {} prepared no batch within {} ms", settings_.rank,
                                dataset_.description(), settings_.timeout_ms));
  }
  if (ready_ == 0) {
    if (failure_) std::rethrow_exception(failure_);
    return false;
  }
  std::swap(batch, ring_[first_]);
  first_ = (first_ + 1) % ring_.size();
  --ready_;
  changed_.notify_all();
  return true;
}

void Loader::run(const std::stop_token& stop) {
  std::exception_ptr failure;
  try {
    for (std::int64_t epoch = 0; epoch < settings_.epochs && !stop.stop_requested(); ++epoch) {
      prepare_epoch(settings_.first_epoch + epoch, stop);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  is_finished_ = true;
  changed_.notify_all();
}

void Loader::prepare_epoch(std::int64_t epoch, const std::stop_token& stop) {
  std::vector<std::uint32_t> order;
  if (settings_.is_shuffled) {
    order = epoch_order(plan_.samples(), settings_.seed, epoch);
  } else {
    order.resize(static_cast<std::size_t>(plan_.samples()));
    std::iota(order.begin(), order.end(), 0u);
  }
  Minibatch batch;
  for (std::int64_t iteration = 0; iteration < plan_.iterations_per_epoch(); ++iteration) {
    batch.epoch = epoch;
    batch.iteration = iteration;
    batch.global_count = plan_.global(iteration).count;
    if (!fill(batch, order, stop) || !hand_over(batch, stop)) return;
  }
}

// Prepares one batch. Returns false if the thread must stop.
bool Loader::fill(Minibatch& batch, const std::vector<std::uint32_t>& order,
                  const std::stop_token& stop) {
  const OrderRange share = plan_.local(batch.iteration, settings_.rank);
  const auto count = static_cast<std::size_t>(share.count);
  const ImageShape shape = dataset_.shape();
  const auto elements = static_cast<std::size_t>(shape.elements());
  const auto channels = static_cast<std::size_t>(shape.channels);
  std::vector<std::uint8_t> pixels(elements);
  batch.samples.resize(count);
  batch.labels.resize(count);
  batch.images.resize(count * elements);
  for (std::size_t i = 0; i < count; ++i) {
    if (stop.stop_requested()) return false;
    const std::int64_t index = order[static_cast<std::size_t>(share.begin) + i];
    batch.samples[i] = index;
    batch.labels[i] = dataset_.get(index, pixels);
    augment(settings_.augmentation, shape, settings_.seed, batch.epoch, index, pixels);
    float* image = batch.images.data() + i * elements;
    for (std::size_t at = 0; at < elements; at += channels) {
      for (std::size_t channel = 0; channel < channels; ++channel) {
        image[at + channel] = normalised_[channel * kByteValues + pixels[at + channel]];
      }
    }
  }
  return true;
}

bool Loader::hand_over(Minibatch& batch, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [this] { return ready_ < ring_.size(); })) return false;
  std::swap(batch, ring_[(first_ + ready_) % ring_.size()]);
  ++ready_;
  changed_.notify_all();
  return true;
}

}  // namespace kolo::train
