#include "train/data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <utility>

namespace kolo::train {
namespace {

constexpr std::size_t kByteValues = 256;

std::vector<float> normalisation_table(const Dataset& dataset, const Normalization& constants) {
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

// The failure of a sample.
struct Failure {
  std::size_t place = 0;
  std::exception_ptr exception;
};

// Calls prepare(place, memory) for the places 0 to count - 1, from up to `threads` threads that
// take the places in order. Ends early if `stop` is requested. Rethrows the exception of the first
// place that fails: all places before it were taken, and end.
template <typename Prepare>
void for_each_place(std::size_t count, int threads, const std::stop_token& stop,
                    const Prepare& prepare) {
  std::atomic<std::size_t> next{0};
  std::vector<Failure> failures(
      std::clamp<std::size_t>(count, 1, static_cast<std::size_t>(threads)));
  const auto work = [&](Failure& failure) {
    std::vector<std::uint8_t> memory;
    while (!stop.stop_requested() && (failure.place = next++) < count) {
      try {
        prepare(failure.place, memory);
      } catch (...) {
        failure.exception = std::current_exception();
        next = count;
        return;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < failures.size(); ++i)
      others.emplace_back([&work, &failure = failures[i]] { work(failure); });
    work(failures.front());
  }
  const Failure* first = nullptr;
  for (const Failure& failure : failures) {
    if (failure.exception && (first == nullptr || failure.place < first->place)) first = &failure;
  }
  if (first != nullptr) std::rethrow_exception(first->exception);
}

}  // namespace

Loader::Loader(const Dataset& dataset, const BatchPlan& plan, const LoaderSettings& settings)
    : dataset_(dataset),
      plan_(plan),
      settings_(settings),
      normalised_(
          normalisation_table(dataset, settings.normalization.value_or(dataset.normalization()))) {
  if (plan.samples() > dataset.size() || settings.rank < 0 || settings.rank >= plan.ranks() ||
      settings.depth < 1 || settings.threads < 1 || settings.epochs < 0 ||
      settings.first_epoch < 0 || settings.timeout_ms <= 0) {
    throw std::invalid_argument(
        fmt::format("Loader: rank {} of {}, {} of {} samples, depth {}, threads {}, epochs {} from "
                    "{}, timeout {} ms",
                    settings.rank, plan.ranks(), plan.samples(), dataset.size(), settings.depth,
                    settings.threads, settings.epochs, settings.first_epoch, settings.timeout_ms));
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
  std::int64_t iteration = epoch == settings_.first_epoch ? settings_.first_iteration : 0;
  for (; iteration < plan_.iterations_per_epoch(); ++iteration) {
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
  const auto begin = order.begin() + share.begin;
  batch.samples.assign(begin, begin + share.count);
  batch.labels.resize(count);
  const auto elements = static_cast<std::size_t>(dataset_.shape().elements());
  batch.images.resize(settings_.has_images ? count * elements : 0);
  for_each_place(count, settings_.threads, stop,
                 [&](std::size_t place, auto& pixels) { fill_sample(batch, place, pixels); });
  return !stop.stop_requested();
}

// `pixels` is memory for the bytes of a sample.
void Loader::fill_sample(Minibatch& batch, std::size_t place,
                         std::vector<std::uint8_t>& pixels) const {
  const ImageShape shape = dataset_.shape();
  const auto elements = static_cast<std::size_t>(shape.elements());
  const auto channels = static_cast<std::size_t>(shape.channels);
  const std::int64_t index = batch.samples[place];
  pixels.resize(elements);
  batch.labels[place] = dataset_.get(index, pixels);
  if (!settings_.has_images) return;
  augment(settings_.augmentation, shape, settings_.seed, batch.epoch, index, pixels);
  float* image = batch.images.data() + place * elements;
  for (std::size_t at = 0; at < elements; at += channels) {
    for (std::size_t channel = 0; channel < channels; ++channel)
      image[at + channel] = normalised_[channel * kByteValues + pixels[at + channel]];
  }
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
