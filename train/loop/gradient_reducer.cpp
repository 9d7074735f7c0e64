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
      rank_(communicator.rank()),
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
  if (!is_in_flight_) before_ = communicator_.statistics();
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
  const Clock::time_point now = Clock::now();
  if (ready_ == buckets_.front().parameters)
    record_.first_full = seconds_between(backward_began_, now);
  for (; full_ < buckets_.size() && is_full(full_); ++full_) (*flights_)[full_].full = now;
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
                  rank_, parameter.name, iteration_));
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

void GradientReducer::begin_strategy(const UpdateStep& step) {
  UpdateStep next = step;
  if (const GradientUpdate* how = strategy_.gradient_update())
    next.number -= how->skipped_of_training();
  strategy_.begin_iteration(next);
}

void GradientReducer::receive(std::size_t i) {
  const Clock::time_point start = Clock::now();
  strategy_.receive(i);
  record_.waiting += seconds_since(start);
  note("decode", i, start);
}

bool GradientReducer::needs_all_sums() const {
  const GradientUpdate* const how = strategy_.gradient_update();
  return how != nullptr && how->needs_all_sums();
}

void GradientReducer::apply_all() {
  const GradientUpdate* const how = strategy_.gradient_update();
  const Clock::time_point start = Clock::now();
  const double before = how->statistics().waiting;
  const bool is_update = strategy_.prepare_update();
  const double waiting = how->statistics().waiting - before;
  record_.optimizer += seconds_since(start) - waiting;
  record_.waiting += waiting;
  note("check and clip all gradients", start);
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (is_update) update(i);
    count_exchange(i);
    if (is_update) continue;
    const Traffic unsent = strategy_.traffic_of_update(buckets_[i].range.count);
    record_.formula += {-unsent.sent, -unsent.received};
  }
}

void GradientReducer::end_strategy() {
  const Clock::time_point start = Clock::now();
  strategy_.end_iteration();
  const double seconds = seconds_since(start);
  record_.waiting += seconds;
  record_.in_flight += seconds;
  note("wait for parameters", start);
}

void GradientReducer::apply(std::size_t i) {
  update(i);
  count_exchange(i);
}

void GradientReducer::update(std::size_t i) {
  const Clock::time_point start = Clock::now();
  strategy_.apply(i);
  record_.optimizer += seconds_since(start);
  note_life(i, start);
}

void GradientReducer::note(std::string_view name, Clock::time_point start) {
  if (timeline_ != nullptr) timeline_->add(name, start, Clock::now());
}

void GradientReducer::note(std::string_view name, std::size_t bucket, Clock::time_point start) {
  if (timeline_ != nullptr && timeline_->is_on())
    timeline_->add(fmt::format("{} bucket {}", name, bucket), start, Clock::now());
}

void GradientReducer::note_life(std::size_t i, Clock::time_point start) {
  if (timeline_ == nullptr || !timeline_->is_on()) return;
  note("update", i, start);
  note_exchange(i, start);
  timeline_->add("applied", start, Clock::now(), static_cast<int>(i));
}

void GradientReducer::note_exchange(std::size_t i, Clock::time_point taken) {
  if (timeline_ == nullptr || !timeline_->is_on()) return;
  const Flight& flight = (*flights_)[i];
  // Servers, and workers without samples, have no backward that fills a bucket.
  const Clock::time_point full = flight.full == Clock::time_point{} ? flight.start : flight.full;
  const int bucket = static_cast<int>(i);
  const Clock::time_point end(Clock::duration(flight.end.load(std::memory_order_acquire)));
  if (end > flight.start && flight.start >= full) {  // else it is exchanged later
    timeline_->add("queued", full, flight.start, bucket);
    timeline_->add("exchanged", flight.start, end, bucket);
    timeline_->add("received", end, taken, bucket);
  }
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
  full_ = 0;
  for (Flight& flight : *flights_) {
    flight.full = {};
    flight.end.store(0, std::memory_order_relaxed);
  }
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

ExchangeRecord GradientReducer::end_record(bool is_in_flight) {
  is_in_flight_ = is_in_flight;
  const CommunicatorStatistics now = communicator_.statistics();
  record_.moved = moved_between(before_, now);
  before_ = now;
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
