#include "train/loop/local_reducer.h"

#include "train/loop/seconds.h"

namespace kolo::train {

LocalReducer::LocalReducer(Communicator& communicator, Strategy& strategy,
                           tensor::Parameters& parameters, std::vector<Bucket> buckets, int steps)
    : GradientReducer(communicator, strategy, parameters, std::move(buckets)), steps_(steps) {}

void LocalReducer::begin(const UpdateStep& step) {
  begin_record();
  begin_exchanges();
  strategy_.begin_iteration(step);
}

ExchangeRecord LocalReducer::finish(bool is_complete) {
  require_all_ready();
  const bool is_average = is_complete || iteration_ % steps_ == 0;
  std::vector<Work> works;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    update(i);
    if (!is_average) continue;
    const Clock::time_point start = Clock::now();
    works.push_back(start_exchange(i));
    record_.waiting += seconds_since(start);
  }
  for (std::size_t i = 0; i < works.size(); ++i) {
    const Clock::time_point start = Clock::now();
    works[i].wait();
    const Clock::time_point arrived = Clock::now();
    end_flight(i, arrived);
    record_.waiting += seconds_between(start, arrived);
    note("wait for", i, start);
    note_exchange(i, arrived);
    count_exchange(i);
  }
  if (is_average) record_.in_flight = seconds_in_flight();
  return end_record();
}

}  // namespace kolo::train
