// Buckets: which gradients travel together.
//
// The gradient arena lies in the order in which backward finishes, so a bucket is a range of it and
// fills from the front: nothing is copied, and when a bucket is full all buckets before it are. The
// buckets tile the arena, gaps included.
//
// Their size is a trade: a bucket costs one latency, and cannot leave before its last gradient is
// there; the last bucket leaves when backward is over, so nothing hides it. The first is small, so
// that the network has work early.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/arena.h"

namespace kolo::train {

struct BucketSizes {
  std::int64_t first_bytes = std::int64_t{1} << 20;
  std::int64_t bytes = std::int64_t{25} << 20;
};

struct Bucket {
  tensor::Range range;  // of the arena, in elements
  int first_parameter =
      0;  // parameters [first_parameter, first_parameter + parameters) in arena order
  int parameters = 0;
};

// The ranges of all parameters, from the arena's front to its back.
std::vector<tensor::Range> ranges_in_arena(const tensor::Parameters& parameters);

// `parameters`: the ranges of all parameters from the arena's front to its back; `arena_elements`:
// its length with gaps. A bucket closes with the first parameter that brings it to its size, as in
// PyTorch's DDP; no parameter is split. Throws std::invalid_argument for ranges out of order, and
// sizes below 1.
std::vector<Bucket> plan_buckets(std::span<const tensor::Range> parameters,
                                 std::int64_t arena_elements, const BucketSizes& sizes);

}  // namespace kolo::train
