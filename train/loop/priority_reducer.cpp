#include "train/loop/priority_reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "train/loop/seconds.h"

namespace kolo::train {

PriorityReducer::PriorityReducer(Communicator& communicator, Strategy& strategy,
                                 tensor::Parameters& parameters, std::vector<Bucket> buckets)
    : GradientReducer(communicator, strategy, parameters, std::move(buckets)),
      control_(communicator.duplicate()),
      bucket_of_(position_.size()),
      states_(buckets_.size(), State::applied),
      decisions_(buckets_.size()),
      started_(buckets_.size()),
      applied_(buckets_.size()) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const auto first = static_cast<std::size_t>(buckets_[i].first_parameter);
    std::fill_n(bucket_of_.begin() + static_cast<std::ptrdiff_t>(first), buckets_[i].parameters, i);
  }
}

void PriorityReducer::begin(const UpdateStep& step) {
  begin_record();
  step_ = step;
  is_begun_ = false;
}

void PriorityReducer::before_use(tensor::ParameterId id) {
  if (applied_ == buckets_.size()) return;
  const auto position = static_cast<std::size_t>(position_.at(static_cast<std::size_t>(id)));
  const double optimizer = record_.optimizer;
  const Clock::time_point start = Clock::now();
  complete(bucket_of_[position]);
  const double seconds = seconds_since(start);
  seconds_in_forward_ += seconds;
  record_.in_forward += seconds - (record_.optimizer - optimizer);
}

// The exchanges of the iteration before have ended: forward has used every parameter.
void PriorityReducer::begin_round() {
  if (is_begun_) return;
  is_begun_ = true;
  settle();
  begin_strategy(step_);
  begin_exchanges();
  std::ranges::fill(states_, State::filling);
  decided_.clear();
  started_ = 0;
  applied_ = 0;
}

void PriorityReducer::gradient_ready(tensor::ParameterId id) {
  Clock::time_point start = Clock::now();
  begin_round();
  record_.in_backward += seconds_since(start);
  count_ready(id);
  start = Clock::now();
  advance();
  record_.in_backward += seconds_since(start);
}

void PriorityReducer::all_ready() {
  const Clock::time_point start = Clock::now();
  begin_round();
  ready_ = static_cast<int>(position_.size());
  advance();
  record_.waiting += seconds_since(start);
}

void PriorityReducer::advance() {
  collect();
  while (in_flight_.size() < kInFlight && start_next()) collect();
}

void PriorityReducer::collect() {
  while (!in_flight_.empty() && in_flight_.front().work.test()) {
    Exchange& done = in_flight_.front();
    done.work.wait();  // throws its failure
    end_flight(done.bucket, Clock::now());
    states_[done.bucket] = State::arrived;
    in_flight_.pop_front();
  }
}

bool PriorityReducer::start_next() {
  if (started_ == buckets_.size()) return false;
  std::size_t bucket = 0;
  if (!find_decision(bucket)) return false;
  if (!is_full(bucket)) return false;  // not here yet
  in_flight_.push_back({bucket, start_exchange(bucket)});
  states_[bucket] = State::in_flight;
  ++started_;
  return true;
}

// An exchange starts on a rank once its part of the broadcast is done. So a rank that waits for an
// exchange has passed on all decisions that its peers need for it.
bool PriorityReducer::find_decision(std::size_t& bucket) {
  if (decided_.size() == started_) {
    if (control_.rank() == 0 && !decide()) return false;
    decided_.push_back(control_.broadcast_async({&decisions_[started_], 1, ElementType::kInt32}));
  }
  if (!decided_.back().test()) return false;
  decided_.back().wait();  // throws its failure
  bucket = static_cast<std::size_t>(decisions_[started_]);
  if (bucket < buckets_.size() && states_[bucket] == State::filling) return true;
  throw std::logic_error(fmt::format(
      "rank {}: rank 0 decided to exchange bucket {} of {}, which is not possible here: "
      "the ranks do not have the same model",
      control_.rank(), decisions_[started_], buckets_.size()));
}

// Backward fills buckets from the front, and forward uses them from the back.
bool PriorityReducer::decide() {
  bool is_found = false;
  for (std::size_t i = 0; i < buckets_.size() && is_full(i); ++i) {
    if (states_[i] != State::filling) continue;
    decisions_[started_] = static_cast<std::int32_t>(i);
    is_found = true;
  }
  return is_found;
}

void PriorityReducer::apply_arrived() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (states_[i] != State::arrived) continue;
    strategy_.receive(i);  // within the time of the caller
    apply(i);
    states_[i] = State::applied;
    if (++applied_ == buckets_.size()) record_.in_flight += seconds_in_flight();
  }
}

void PriorityReducer::complete(std::size_t i) {
  while (true) {
    advance();
    apply_arrived();
    if (states_[i] == State::applied) return;
    const Clock::time_point start = Clock::now();
    if (!in_flight_.empty()) {
      in_flight_.front().work.wait();
    } else {
      decided_.back().wait();
    }
    note("wait for", i, start);
  }
}

void PriorityReducer::settle() {
  for (std::size_t i = buckets_.size(); i-- > 0;) {
    if (states_[i] != State::applied) complete(i);
  }
}

ExchangeRecord PriorityReducer::finish(bool is_complete) {
  require_all_ready();
  const double optimizer = record_.optimizer;
  const Clock::time_point start = Clock::now();
  if (is_complete) {
    settle();
  } else {
    advance();
    apply_arrived();
  }
  record_.waiting += seconds_since(start) - (record_.optimizer - optimizer);
  return end_record(!is_complete);
}

}  // namespace kolo::train
