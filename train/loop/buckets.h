// Buckets: ranges of gradients that are sent together.
//
// The gradient arena is in the order in which backward finishes. So a bucket is a range of it and
// fills from the front: nothing is copied, and a full bucket means that all earlier ones are full.
// The buckets cover the whole arena, gaps included.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "collectives/gradient_buckets.h"
#include "tensor/arena.h"

namespace kolo::train {

struct Bucket {
  tensor::Range range;  // in the arena, in elements
  int first_parameter =
      0;  // parameters [first_parameter, first_parameter + parameters) in arena order
  int parameters = 0;
};

// Buckets of one parameter each.
inline constexpr BucketSizes kOneParameterEach{1, 1};
// Small buckets, for priorities.
inline constexpr BucketSizes kPriorityBuckets{std::int64_t{4} << 20, std::int64_t{4} << 20};
// One bucket of all parameters.
inline constexpr BucketSizes kAllParameters{std::numeric_limits<std::int64_t>::max(),
                                            std::numeric_limits<std::int64_t>::max()};

// `parameters`: the ranges of all parameters, from the front of the arena to its back.
// `arena_elements`: the length of the arena with gaps. Cut as plan_gradient_buckets() cuts. Throws
// std::invalid_argument for ranges out of order, and for sizes below 1.
std::vector<Bucket> plan_buckets(std::span<const tensor::Range> parameters,
                                 std::int64_t arena_elements, const BucketSizes& sizes);
// The same for all parameters of a model.
std::vector<Bucket> plan_buckets(const tensor::Parameters& parameters,
                                 const BucketSizes& sizes = {});

}  // namespace kolo::train
