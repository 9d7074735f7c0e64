#include "train/loop/bucket_reducer.h"

#include "train/loop/seconds.h"

namespace kolo::train {

BucketReducer::BucketReducer(Communicator& communicator, Strategy& strategy,
                             tensor::Parameters& parameters, std::vector<Bucket> buckets,
                             bool helps_in_backward, Sync sync)
    : GradientReducer(communicator, strategy, parameters, std::move(buckets)),
      helps_in_backward_(helps_in_backward),
      sync_(sync) {}

void BucketReducer::begin(const UpdateStep& step) {
  begin_record();
  begin_exchanges();
  begin_strategy(step);
  works_.clear();
}

void BucketReducer::gradient_ready(tensor::ParameterId id) {
  count_ready(id);
  if (sync_ == Sync::naive || sync_ == Sync::flat) return;
  const Clock::time_point start = Clock::now();
  launch();
  if (helps_in_backward_ && !works_.empty()) communicator_.progress();
  record_.in_backward += seconds_since(start);
}

void BucketReducer::all_ready() {
  ready_ = static_cast<int>(position_.size());
  if (sync_ == Sync::naive || sync_ == Sync::flat) return;
  const Clock::time_point start = Clock::now();
  launch();
  record_.waiting += seconds_since(start);
}

void BucketReducer::launch() {
  while (works_.size() < buckets_.size() && is_full(works_.size()))
    works_.push_back(start_exchange(works_.size()));
}

ExchangeRecord BucketReducer::finish(bool) {
  wait_and_apply();
  return end_record();
}

void BucketReducer::wait_and_apply() {
  require_all_ready();
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Clock::time_point start = Clock::now();
    if (sync_ == Sync::naive) works_.push_back(start_exchange(i));
    if (sync_ == Sync::flat) launch();
    works_[i].wait();
    const Clock::time_point arrived = Clock::now();
    end_flight(i, arrived);
    record_.waiting += seconds_between(start, arrived);
    note("wait for", i, start);
    receive(i);
    if (!needs_all_sums()) apply(i);
  }
  if (needs_all_sums()) apply_all();
  end_strategy();
  record_.in_flight += seconds_in_flight();
}

}  // namespace kolo::train
