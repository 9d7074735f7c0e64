#include "train/loop/buckets.h"

#include <stdexcept>

namespace kolo::train {
namespace {

// The ranges of all parameters, from the arena's front to its back.
std::vector<tensor::Range> ranges_in_arena(const tensor::Parameters& parameters) {
  std::vector<tensor::Range> ranges;
  for (const tensor::ParameterId id : parameters.arena_order()) {
    ranges.push_back(parameters.list()[static_cast<std::size_t>(id)].range);
  }
  return ranges;
}

}  // namespace

std::vector<Bucket> plan_buckets(std::span<const tensor::Range> parameters,
                                 std::int64_t arena_elements, const BucketSizes& sizes) {
  std::vector<std::size_t> lengths;  // with the gap behind each parameter
  std::int64_t place = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool is_last = i + 1 == parameters.size();
    const std::int64_t end = is_last ? arena_elements : parameters[i + 1].begin;
    if (parameters[i].begin < place || end < parameters[i].end()) {
      throw std::invalid_argument("plan_buckets: the ranges are not in the arena's order");
    }
    lengths.push_back(static_cast<std::size_t>(end - place));
    place = end;
  }
  std::vector<Bucket> buckets;
  for (const GradientBucket& bucket : plan_gradient_buckets(lengths, sizeof(float), sizes)) {
    buckets.push_back(
        {{static_cast<std::int64_t>(bucket.first), static_cast<std::int64_t>(bucket.count)},
         static_cast<int>(bucket.first_parameter),
         static_cast<int>(bucket.parameters)});
  }
  return buckets;
}

std::vector<Bucket> plan_buckets(const tensor::Parameters& parameters, const BucketSizes& sizes) {
  return plan_buckets(ranges_in_arena(parameters),
                      static_cast<std::int64_t>(parameters.values().size()), sizes);
}

}  // namespace kolo::train
