#include "train/loop/buckets.h"

#include <stdexcept>

namespace kolo::train {

std::vector<tensor::Range> ranges_in_arena(const tensor::Parameters& parameters) {
  std::vector<tensor::Range> ranges;
  for (const tensor::ParameterId id : parameters.arena_order()) {
    ranges.push_back(parameters.list()[static_cast<std::size_t>(id)].range);
  }
  return ranges;
}

std::vector<Bucket> plan_buckets(std::span<const tensor::Range> parameters,
                                 std::int64_t arena_elements, const BucketSizes& sizes) {
  if (sizes.first_bytes < 1 || sizes.bytes < 1) {
    throw std::invalid_argument("plan_buckets: a bucket needs at least one byte");
  }
  constexpr std::int64_t kElementBytes = sizeof(float);
  std::vector<Bucket> buckets;
  Bucket open;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool is_last = i + 1 == parameters.size();
    const std::int64_t end = is_last ? arena_elements : parameters[i + 1].begin;
    if (parameters[i].begin < open.range.end() || end < parameters[i].end()) {
      throw std::invalid_argument("plan_buckets: the ranges are not in the arena's order");
    }
    open.range.count = end - open.range.begin;
    ++open.parameters;
    const std::int64_t limit = buckets.empty() ? sizes.first_bytes : sizes.bytes;
    if (is_last || open.range.count * kElementBytes >= limit) {
      buckets.push_back(open);
      open = Bucket{{end, 0}, static_cast<int>(i) + 1, 0};
    }
  }
  return buckets;
}

}  // namespace kolo::train
