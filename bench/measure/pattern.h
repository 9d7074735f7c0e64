// Test pattern of the buffers: inputs and expected results.
//
// An element's value follows from its rank, its index and the iteration. Element i of rank r in
// iteration s is the top bits of i a + r b + s c (odd constants, modulo 2^32). So the check finds
// segments that are misplaced, doubled, or left over from the iteration before. The values are
// integers so small that every partial sum is exact in the element's type. So results must be right
// to the bit, in any order of summation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/element.h"

namespace kolo::bench {

struct Pattern {
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int contributions = 1;   // number of ranks that contribute to a result
  std::uint32_t salt = 0;  // the iteration
};

// std::invalid_argument if a reduction of so many contributions is not exact in the type.
void require_exact(const Pattern& pattern);

// data[j] = the value of element first + j of `rank`.
void fill(void* data, std::size_t first, std::size_t count, int rank, const Pattern& pattern);

// Number of elements of data[0..count) that are not the reduction of the elements first + j of
// ranks [first_rank, first_rank + contributions).
std::uint64_t count_wrong_reductions(const void* data, std::size_t first, std::size_t count,
                                     int first_rank, const Pattern& pattern);

// The same for the first `ranks` contributions only: partial results of a scan.
std::uint64_t count_wrong_reductions(const void* data, std::size_t first, std::size_t count,
                                     int first_rank, int ranks, const Pattern& pattern);

// Number of elements that are not the element first + j of `rank`.
std::uint64_t count_wrong_copies(const void* data, std::size_t first, std::size_t count, int rank,
                                 const Pattern& pattern);

}  // namespace kolo::bench
