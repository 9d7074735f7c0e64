#include "train/loop/key_reducer.h"

#include <algorithm>
#include <numeric>

#include "collectives/schedule.h"
#include "train/loop/seconds.h"

namespace kolo::train {

KeyPlan plan_of_buckets(std::span<const Bucket> buckets, std::int64_t arena_elements, int workers,
                        int servers) {
  std::vector<KeyRange> ranges;
  for (std::size_t i = buckets.size(); i-- > 0;) {
    const auto count = static_cast<std::size_t>(buckets[i].range.count);
    KeyRange range;
    range.first = static_cast<std::size_t>(buckets[i].range.begin);
    for (int server = 0; server < servers; ++server)
      range.shares.push_back(chunk_count(count, servers, server));
    ranges.push_back(std::move(range));
  }
  std::vector<int> ranks(static_cast<std::size_t>(servers));
  std::iota(ranks.begin(), ranks.end(), workers);
  KeyPlan plan = plan_keys(ranges, ranks);
  plan.elements = static_cast<std::size_t>(arena_elements);
  return plan;
}

KeyReducer::KeyReducer(Communicator& communicator, Strategy& strategy,
                       tensor::Parameters& parameters, std::vector<Bucket> buckets, KeyPlan plan)
    : GradientReducer(communicator, strategy, parameters, std::move(buckets)),
      plan_(std::move(plan)),
      client_(communicator, plan_) {}

void KeyReducer::begin(const UpdateStep& step) {
  begin_record();
  begin_exchanges();
  strategy_.begin_iteration(step);
  launched_ = 0;
}

void KeyReducer::gradient_ready(tensor::ParameterId id) {
  count_ready(id);
  const Clock::time_point start = Clock::now();
  launch();
  client_.progress();
  record_.in_backward += seconds_since(start);
}

void KeyReducer::all_ready() {
  ready_ = static_cast<int>(position_.size());
  const Clock::time_point start = Clock::now();
  launch();
  record_.waiting += seconds_since(start);
}

std::pair<std::size_t, std::size_t> KeyReducer::keys_of(std::size_t bucket) const {
  const std::size_t range = buckets_.size() - 1 - bucket;
  return {plan_.first_keys[range], plan_.first_keys[range + 1]};
}

// The answer may overwrite the gradients: apply() copies it to the parameters, which backward may
// still need.
void KeyReducer::launch() {
  for (; launched_ < buckets_.size() && is_full(launched_); ++launched_) {
    begin_flight(launched_);
    const auto [first, end] = keys_of(launched_);
    for (std::size_t key = first; key < end; ++key) {
      const std::span<float> gradients =
          parameters_.gradients().subspan(plan_.keys[key].first, plan_.keys[key].count);
      client_.push_pull(key, iteration_ - 1, gradients, samples_, gradients);
    }
  }
}

ExchangeRecord KeyReducer::finish(bool) {
  require_all_ready();
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Clock::time_point start = Clock::now();
    const auto [first, end] = keys_of(i);
    for (std::size_t key = first; key < end; ++key) client_.wait(key);
    const Clock::time_point arrived = Clock::now();
    end_flight(i, arrived);
    record_.waiting += seconds_between(start, arrived);
    note("wait for", i, start);
    apply(i);
  }
  record_.in_flight = seconds_in_flight();
  return end_record();
}

std::int64_t KeyReducer::next_iteration() const {
  return std::max(iteration_, client_.next_iteration());
}

}  // namespace kolo::train
