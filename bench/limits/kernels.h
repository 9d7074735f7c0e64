// The inner loops of the limits, in the widest vectors of the machine that runs them.
#pragma once

#include <cstddef>

namespace kolo::bench {

// x = x * factor: each byte read once and written once.
void scale_in_place(float* x, std::size_t count, float factor);

// own = slot = own + slot, in one sweep.
void add_to_both(float* own, float* slot, std::size_t count);

// own = own + other.
void add_to(float* own, const float* other, std::size_t count);

}  // namespace kolo::bench
