#include "transports/decorators/token_bucket.h"

#include <algorithm>

namespace kolo::inline v0::decorators {

namespace {

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

std::chrono::nanoseconds nanoseconds(std::uint64_t count) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(count));
}

}  // namespace

TokenBucket::TokenBucket(std::uint64_t bytes_per_second, std::uint64_t burst_bytes)
    : rate_(bytes_per_second),
      saved_(rate_ == 0 ? std::chrono::nanoseconds(0)
                        : nanoseconds(burst_bytes * kNanosecondsPerSecond / rate_)) {}

TransitTimes TokenBucket::pass(TransitTimes coming, std::size_t bytes) {
  if (rate_ == 0) return coming;
  if (paid_ < coming.first - saved_) {
    paid_ = coming.first - saved_;
    carry_ = 0;
  }
  const std::uint64_t due = bytes * kNanosecondsPerSecond + carry_;
  const auto takes = nanoseconds(due / rate_);
  carry_ = due % rate_;
  const auto first = std::max(coming.first, paid_);
  paid_ += takes;
  return {first, std::max(coming.last, paid_)};
}

}  // namespace kolo::inline v0::decorators
