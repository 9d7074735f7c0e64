#include "train/loop/data_parallel_reducer.h"

#include "train/loop/seconds.h"
#include "train/strategies/data_parallel.h"

namespace kolo::train {
namespace {

constexpr int kRoot = 0;
constexpr std::string_view kDirect = "direct";

}  // namespace

DataParallelReducer::DataParallelReducer(Communicator& communicator, Strategy& strategy,
                                         tensor::Parameters& parameters,
                                         std::vector<Bucket> buckets, bool helps_in_backward)
    : BucketReducer(communicator, strategy, parameters, std::move(buckets), helps_in_backward) {}

void DataParallelReducer::count_blocking(Clock::time_point start) {
  const double seconds = seconds_since(start);
  record_.waiting += seconds;
  record_.in_flight += seconds;
  note("parameters and batch of rank 0", start);
}

void DataParallelReducer::broadcast() {
  const Clock::time_point start = Clock::now();
  broadcast_parameters(communicator_, parameters_);
  is_current_ = true;
  count_blocking(start);
}

void DataParallelReducer::begin(const UpdateStep& step) {
  BucketReducer::begin(step);
  if (!is_current_) broadcast();
}

void DataParallelReducer::scatter(const Minibatch& whole, std::int64_t count, std::size_t pixels,
                                  Minibatch& mine) {
  const Clock::time_point start = Clock::now();
  const int size = communicator_.size();
  std::vector<std::size_t> samples, floats;
  for (int rank = 0; rank < size; ++rank) {
    samples.push_back(static_cast<std::size_t>(share_of({0, count}, rank, size).count));
    floats.push_back(samples.back() * pixels);
  }
  const auto rank = static_cast<std::size_t>(communicator_.rank());
  mine.global_count = count;
  mine.samples.resize(samples[rank]);
  mine.labels.resize(samples[rank]);
  mine.images.resize(floats[rank]);
  const CallOptions call{.algorithm = kDirect};
  communicator_.scatter_v(whole.samples, mine.samples, samples, kRoot, call);
  communicator_.scatter_v(whole.labels, mine.labels, samples, kRoot, call);
  communicator_.scatter_v(whole.images, mine.images, floats, kRoot, call);
  count_blocking(start);
  const auto bytes_of = [&](std::size_t number) {
    return static_cast<double>(
        number * (sizeof(std::int64_t) + sizeof(std::int32_t) + pixels * sizeof(float)));
  };
  if (communicator_.rank() == kRoot) {
    record_.formula.sent += bytes_of(static_cast<std::size_t>(count) - samples[rank]);
  } else {
    record_.formula.received += bytes_of(samples[rank]);
  }
}

// One broadcast per iteration: here, or in the next begin().
ExchangeRecord DataParallelReducer::finish(bool is_complete) {
  wait_and_apply();
  is_current_ = false;
  if (is_complete) broadcast();
  return end_record();
}

}  // namespace kolo::train
