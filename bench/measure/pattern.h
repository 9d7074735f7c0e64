// What goes into the buffers, and what must come out.
//
// An element's value follows from the rank that gives it, its index, and the iteration: element i
// of rank r in iteration s is the top bits of i a + r b + s c (odd constants, modulo 2^32). So a
// segment that lands elsewhere, comes twice, or is left over from the iteration before shows. The
// values are small integers, few enough bits that every partial sum is exact in the element's type:
// the result must be right to the bit, in whatever order it was summed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/element.h"

namespace kolo::bench {

struct Pattern {
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int contributions = 1;   // how many ranks' values a result is made of
  std::uint32_t salt = 0;  // the iteration
};

// std::invalid_argument where so many contributions cannot all be summed exactly in that type.
void require_exact(const Pattern& pattern);

// data[j] = the value of element first + j of `rank`.
void fill(void* data, std::size_t first, std::size_t count, int rank, const Pattern& pattern);

// How many of data[0..count) are not the reduction of the elements first + j of ranks [first_rank,
// first_rank + contributions).
std::uint64_t count_wrong_reductions(const void* data, std::size_t first, std::size_t count,
                                     int first_rank, const Pattern& pattern);

// The same of fewer ranks than give: what a scan has on its way.
std::uint64_t count_wrong_reductions(const void* data, std::size_t first, std::size_t count,
                                     int first_rank, int ranks, const Pattern& pattern);

// How many are not the element first + j of `rank`.
std::uint64_t count_wrong_copies(const void* data, std::size_t first, std::size_t count, int rank,
                                 const Pattern& pattern);

}  // namespace kolo::bench
