#include "train/loop/gradient_reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "train/loop/bucket_reducer.h"
#include "train/loop/data_parallel_reducer.h"
#include "train/loop/fusion_reducer.h"
#include "train/loop/local_reducer.h"
#include "train/loop/priority_reducer.h"
#include "train/loop/seconds.h"

namespace kolo::train {

GradientReducer::GradientReducer(Communicator& communicator, Strategy& strategy,
                                 tensor::Parameters& parameters, std::vector<Bucket> buckets)
    : communicator_(communicator),
      strategy_(strategy),
      parameters_(parameters),
      buckets_(std::move(buckets)),
      position_(parameters.list().size()),
      flights_(std::make_shared<std::vector<Flight>>(buckets_.size())) {
  int position = 0;
  for (const tensor::ParameterId id : parameters.arena_order()) {
    position_[static_cast<std::size_t>(id)] = position++;
  }
}

void GradientReducer::begin_record() {
  ++iteration_;
  record_ = {};
  seconds_in_forward_ = 0;
  before_ = communicator_.statistics();
}

void GradientReducer::count_ready(tensor::ParameterId id) {
  if (position_.at(static_cast<std::size_t>(id)) != ready_) {
    throw std::logic_error(
        fmt::format("the gradient of parameter {} is number {} in backward, but "
                    "number {} in the arena: a bucket would be sent before it is full",
                    id, ready_, position_[static_cast<std::size_t>(id)]));
  }
  ++ready_;
  require_finite(id);
  if (ready_ == buckets_.front().parameters) record_.first_full = seconds_since(backward_began_);
}

// The exponent of an infinity or of a NaN has all bits set; the sign is ignored.
void GradientReducer::require_finite(tensor::ParameterId id) const {
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  const tensor::Parameter& parameter = parameters_.list()[static_cast<std::size_t>(id)];
  const auto gradient =
      parameters_.gradients().subspan(static_cast<std::size_t>(parameter.range.begin),
                                      static_cast<std::size_t>(parameter.range.count));
  std::uint32_t largest = 0;
  for (const float value : gradient)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & kMagnitude);
  if (largest < kInfinity) return;
  throw std::runtime_error(
      fmt::format("rank {}: the gradient of {} is not finite at iteration {}, training has "
                  "diverged; lower --lr, or give it a longer --warmup-epochs",
                  communicator_.rank(), parameter.name, iteration_));
}

void GradientReducer::all_zero() {
  settle();
  std::ranges::fill(parameters_.gradients(), 0.0F);
  all_ready();
}

void GradientReducer::require_all_ready() const {
  if (ready_ == static_cast<int>(position_.size())) return;
  throw std::logic_error(fmt::format("backward ended, and only {} of {} gradients are final",
                                     ready_, position_.size()));
}

bool GradientReducer::is_full(std::size_t i) const {
  return ready_ >= buckets_[i].first_parameter + buckets_[i].parameters;
}

std::span<float> GradientReducer::gradients_of(std::size_t i) {
  const tensor::Range range = buckets_[i].range;
  return parameters_.gradients().subspan(static_cast<std::size_t>(range.begin),
                                         static_cast<std::size_t>(range.count));
}

void GradientReducer::begin_flight(std::size_t i) { (*flights_)[i].start = Clock::now(); }

Work GradientReducer::start_exchange(std::size_t i) {
  begin_flight(i);
  Work work = strategy_.exchange(i);
  work.when_done([flights = flights_, i](const Error*) {
    (*flights)[i].end.store(Clock::now().time_since_epoch().count(), std::memory_order_release);
  });
  return work;
}

// The thread that completed the exchange may not have noted the time yet.
void GradientReducer::end_flight(std::size_t i, Clock::time_point now) {
  Clock::rep not_yet = 0;
  (*flights_)[i].end.compare_exchange_strong(not_yet, now.time_since_epoch().count());
}

void GradientReducer::apply(std::size_t i) {
  update(i);
  count_exchange(i);
}

void GradientReducer::update(std::size_t i) {
  const Clock::time_point start = Clock::now();
  strategy_.apply(i);
  record_.optimizer += seconds_since(start);
}

void GradientReducer::count_exchange(std::size_t i) {
  const Traffic formula = strategy_.traffic(buckets_[i].range.count);
  record_.formula.sent += formula.sent;
  record_.formula.received += formula.received;
  const int hops = strategy_.hops(buckets_[i].range.count);
  record_.hops += hops;
  if (i + 1 < buckets_.size()) return;
  record_.last = formula;
  record_.last_hops = hops;
}

void GradientReducer::begin_exchanges() {
  ready_ = 0;
  for (Flight& flight : *flights_) flight.end.store(0, std::memory_order_relaxed);
}

double GradientReducer::seconds_in_flight() const {
  std::vector<std::pair<Clock::time_point, Clock::time_point>> flights;
  for (const Flight& flight : *flights_) {
    flights.emplace_back(
        flight.start,
        Clock::time_point(Clock::duration(flight.end.load(std::memory_order_acquire))));
  }
  std::ranges::sort(flights);
  double seconds = 0;
  Clock::time_point covered{};
  for (const auto& [start, end] : flights) {
    if (end <= covered) continue;
    seconds += seconds_between(std::max(start, covered), end);
    covered = end;
  }
  return seconds;
}

ExchangeRecord GradientReducer::end_record() {
  const CommunicatorStatistics after = communicator_.statistics();
  record_.moved.sent = static_cast<double>(after.payload_bytes_sent - before_.payload_bytes_sent);
  record_.moved.received =
      static_cast<double>(after.payload_bytes_received - before_.payload_bytes_received);
  if (record_.moved.sent + record_.moved.received == 0) record_.in_flight = 0;
  return record_;
}

BucketSizes bucket_sizes(Sync sync, const BucketSizes& usual) {
  switch (sync) {
    case Sync::naive:
    case Sync::overlap:
    case Sync::fusion:
      return kOneParameterEach;
    case Sync::flat:
      return kAllParameters;
    case Sync::prioritized:
      return kPriorityBuckets;
    case Sync::bucketed:
      break;
  }
  return usual;
}

std::unique_ptr<GradientReducer> make_reducer(const Arm& arm, Strategy& strategy,
                                              const StrategyContext& context,
                                              bool helps_in_backward) {
  Communicator& communicator = context.communicator;
  tensor::Parameters& parameters = context.parameters;
  const std::vector<Bucket>& buckets = context.buckets;
  if (arm.local_steps > 0) {
    return std::make_unique<LocalReducer>(communicator, strategy, parameters, buckets,
                                          arm.local_steps);
  }
  if (arm.strategy == "dataparallel") {
    return std::make_unique<DataParallelReducer>(communicator, strategy, parameters, buckets,
                                                 helps_in_backward);
  }
  if (arm.sync == Sync::prioritized)
    return std::make_unique<PriorityReducer>(communicator, strategy, parameters, buckets);
  if (arm.sync == Sync::fusion)
    return std::make_unique<FusionReducer>(communicator, strategy, parameters, buckets);
  return std::make_unique<BucketReducer>(communicator, strategy, parameters, buckets,
                                         helps_in_backward, arm.sync);
}

}  // namespace kolo::train
