#include "train/loop/gradient_reducer.h"

#include <fmt/format.h>

#include <stdexcept>

#include "train/loop/seconds.h"

namespace kolo::train {

GradientReducer::GradientReducer(Communicator& communicator, Strategy& strategy,
                                 const tensor::Parameters& parameters, std::vector<Bucket> buckets,
                                 bool helps_in_backward)
    : communicator_(communicator),
      strategy_(strategy),
      buckets_(std::move(buckets)),
      position_(parameters.list().size()),
      helps_in_backward_(helps_in_backward) {
  int position = 0;
  for (const tensor::ParameterId id : parameters.arena_order()) {
    position_[static_cast<std::size_t>(id)] = position++;
  }
}

void GradientReducer::begin(float learning_rate) {
  strategy_.begin_iteration(learning_rate);
  works_.clear();
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
  const Clock::time_point start = Clock::now();
  launch();
  if (helps_in_backward_ && !works_.empty()) communicator_.progress();
  record_.in_backward += seconds_since(start);
}

void GradientReducer::all_ready() {
  ready_ = static_cast<int>(position_.size());
  const Clock::time_point start = Clock::now();
  launch();
  record_.waiting += seconds_since(start);
}

void GradientReducer::launch() {
  while (works_.size() < buckets_.size()) {
    const Bucket& next = buckets_[works_.size()];
    if (ready_ < next.first_parameter + next.parameters) return;
    if (works_.empty()) first_start_ = Clock::now();
    works_.push_back(strategy_.exchange(works_.size()));
  }
}

ExchangeRecord GradientReducer::finish() {
  if (works_.size() != buckets_.size()) {
    throw std::logic_error(fmt::format("backward ended, and only {} of {} buckets are full",
                                       works_.size(), buckets_.size()));
  }
  for (std::size_t i = 0; i < works_.size(); ++i) {
    const Clock::time_point start = Clock::now();
    works_[i].wait();
    const Clock::time_point arrived = Clock::now();
    strategy_.apply(i);
    record_.waiting += seconds_between(start, arrived);
    record_.optimizer += seconds_since(arrived);
    record_.in_flight = seconds_between(first_start_, arrived);
    const Traffic formula = strategy_.traffic(buckets_[i].range.count);
    record_.formula.sent += formula.sent;
    record_.formula.received += formula.received;
  }
  const CommunicatorStatistics after = communicator_.statistics();
  record_.moved.sent = static_cast<double>(after.payload_bytes_sent - before_.payload_bytes_sent);
  record_.moved.received =
      static_cast<double>(after.payload_bytes_received - before_.payload_bytes_received);
  return record_;
}

}  // namespace kolo::train
