#include "train/loop/gradient_reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "train/loop/seconds.h"

namespace kolo::train {

GradientReducer::GradientReducer(Communicator& communicator, Strategy& strategy,
                                 const tensor::Parameters& parameters, std::vector<Bucket> buckets,
                                 bool helps_in_backward, Sync sync)
    : communicator_(communicator),
      strategy_(strategy),
      parameters_(parameters),
      buckets_(std::move(buckets)),
      position_(parameters.list().size()),
      helps_in_backward_(helps_in_backward),
      sync_(sync),
      flights_(std::make_shared<std::vector<Flight>>(buckets_.size())) {
  int position = 0;
  for (const tensor::ParameterId id : parameters.arena_order()) {
    position_[static_cast<std::size_t>(id)] = position++;
  }
}

void GradientReducer::begin(float learning_rate) {
  strategy_.begin_iteration(learning_rate);
  ++iteration_;
  works_.clear();
  for (Flight& flight : *flights_) flight.end.store(0, std::memory_order_relaxed);
  ready_ = 0;
  record_ = {};
  before_ = communicator_.statistics();
}

void GradientReducer::gradient_ready(tensor::ParameterId id) {
  if (position_.at(static_cast<std::size_t>(id)) != ready_) {
    throw std::logic_error(
        fmt::format("the gradient of parameter {} is number {} in backward, but "
                    "number {} in the arena: a bucket would be sent before it is full",
                    id, ready_, position_[static_cast<std::size_t>(id)]));
  }
  ++ready_;
  require_finite(id);
  if (sync_ == Sync::naive || sync_ == Sync::flat) return;
  const Clock::time_point start = Clock::now();
  launch();
  if (helps_in_backward_ && !works_.empty()) communicator_.progress();
  record_.in_backward += seconds_since(start);
}

void GradientReducer::all_ready() {
  ready_ = static_cast<int>(position_.size());
  if (sync_ == Sync::naive || sync_ == Sync::flat) return;
  const Clock::time_point start = Clock::now();
  launch();
  record_.waiting += seconds_since(start);
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

void GradientReducer::launch() {
  while (works_.size() < buckets_.size()) {
    const Bucket& next = buckets_[works_.size()];
    if (ready_ < next.first_parameter + next.parameters) return;
    start_next();
  }
}

void GradientReducer::start_next() {
  const std::size_t i = works_.size();
  (*flights_)[i].start = Clock::now();
  works_.push_back(strategy_.exchange(i));
  works_.back().when_done([flights = flights_, i](const Error*) {
    (*flights)[i].end.store(Clock::now().time_since_epoch().count(), std::memory_order_release);
  });
}

void GradientReducer::complete(std::size_t i) {
  const Clock::time_point start = Clock::now();
  works_[i].wait();
  const Clock::time_point arrived = Clock::now();
  Clock::rep not_yet = 0;  // the thread that completed it may not have noted it yet
  (*flights_)[i].end.compare_exchange_strong(not_yet, arrived.time_since_epoch().count());
  strategy_.apply(i);
  record_.waiting += seconds_between(start, arrived);
  record_.optimizer += seconds_since(arrived);
  const Traffic formula = strategy_.traffic(buckets_[i].range.count);
  record_.formula.sent += formula.sent;
  record_.formula.received += formula.received;
}

// The union of the intervals of all buckets, which start in order.
double GradientReducer::seconds_in_flight() const {
  double seconds = 0;
  Clock::time_point covered{};
  for (const Flight& flight : *flights_) {
    const Clock::time_point end{Clock::duration(flight.end.load(std::memory_order_acquire))};
    if (end <= covered) continue;
    seconds += seconds_between(std::max(flight.start, covered), end);
    covered = end;
  }
  return seconds;
}

ExchangeRecord GradientReducer::finish() {
  if (ready_ != static_cast<int>(position_.size())) {
    throw std::logic_error(fmt::format("backward ended, and only {} of {} gradients are final",
                                       ready_, position_.size()));
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Clock::time_point start = Clock::now();
    if (sync_ == Sync::naive) start_next();
    if (sync_ == Sync::flat) launch();
    record_.waiting += seconds_since(start);
    complete(i);
  }
  const CommunicatorStatistics after = communicator_.statistics();
  record_.moved.sent = static_cast<double>(after.payload_bytes_sent - before_.payload_bytes_sent);
  record_.moved.received =
      static_cast<double>(after.payload_bytes_received - before_.payload_bytes_received);
  if (record_.moved.sent + record_.moved.received > 0) record_.in_flight = seconds_in_flight();
  return record_;
}

}  // namespace kolo::train
