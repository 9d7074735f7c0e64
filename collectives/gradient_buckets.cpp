#include "collectives/gradient_buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "transports/base/check.h"

namespace kolo::inline v0 {

std::vector<GradientBucket> plan_gradient_buckets(std::span<const std::size_t> lengths,
                                                  std::size_t element_bytes,
                                                  const BucketSizes& sizes) {
  check(sizes.first_bytes >= 1 && sizes.bytes >= 1, "a gradient bucket needs at least one byte");
  std::vector<GradientBucket> buckets;
  GradientBucket open;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    open.count += lengths[i];
    ++open.parameters;
    const auto limit = static_cast<std::size_t>(buckets.empty() ? sizes.first_bytes : sizes.bytes);
    if (i + 1 == lengths.size() || open.count * element_bytes >= limit) {
      buckets.push_back(open);
      open = {open.first + open.count, 0, i + 1, 0};
    }
  }
  return buckets;
}

GradientBuckets::GradientBuckets(Communicator& communicator, Buffer gradients,
                                 std::span<const std::size_t> lengths, Settings settings)
    : communicator_(communicator),
      gradients_(gradients),
      settings_(settings),
      buckets_(plan_gradient_buckets(lengths, element_bytes(gradients.type), settings_.sizes)),
      is_ready_(lengths.size()) {
  const std::size_t total = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
  check(total == gradients.count,
        fmt::format("GradientBuckets: the parameters have {} elements, and there are {} gradients",
                    total, gradients.count));
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    bucket_of_.insert(bucket_of_.end(), buckets_[i].parameters, i);
    missing_.push_back(buckets_[i].parameters);
  }
}

void GradientBuckets::count_ready(std::size_t parameter) {
  is_ready_[parameter] = true;
  --missing_[bucket_of_[parameter]];
}

void GradientBuckets::ready(std::size_t parameter) {
  if (parameter >= is_ready_.size())
    fail_check(fmt::format("GradientBuckets: parameter {} of {}", parameter, is_ready_.size()));
  if (is_ready_[parameter]) {
    fail_check(
        fmt::format("GradientBuckets: parameter {} is ready for the second time; call "
                    "wait() at the end of the iteration",
                    parameter));
  }
  count_ready(parameter);
  start_full();
  if (!works_.empty()) communicator_.progress();
}

void GradientBuckets::ready_all() {
  for (std::size_t i = 0; i < is_ready_.size(); ++i) {
    if (!is_ready_[i]) count_ready(i);
  }
  start_full();
}

void GradientBuckets::start_full() {
  while (works_.size() < buckets_.size() && missing_[works_.size()] == 0) {
    const GradientBucket& bucket = buckets_[works_.size()];
    auto* address =
        static_cast<std::byte*>(gradients_.data) + bucket.first * element_bytes(gradients_.type);
    works_.push_back(communicator_.all_reduce_async({address, bucket.count, gradients_.type},
                                                    settings_.op, settings_.call));
  }
}

void GradientBuckets::wait() {
  const auto missing = std::ranges::find(is_ready_, false);
  if (missing != is_ready_.end()) {
    fail_check(
        fmt::format("GradientBuckets: rank {} waits, but its parameter {} of {} is not "
                    "ready; call ready() for each, or ready_all()",
                    communicator_.rank(), missing - is_ready_.begin(), is_ready_.size()));
  }
  for (Work& work : works_) work.wait();
  works_.clear();
  is_ready_.assign(is_ready_.size(), false);
  for (std::size_t i = 0; i < buckets_.size(); ++i) missing_[i] = buckets_[i].parameters;
}

}  // namespace kolo::inline v0
