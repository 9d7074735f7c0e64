// Inner loops of the limits, with the widest vectors of the machine.
#pragma once

#include <cstddef>

namespace kolo::bench {

// x = x * factor: reads and writes each byte once.
void scale_in_place(float* x, std::size_t count, float factor);

// own = slot = own + slot, in one pass.
void add_to_both(float* own, float* slot, std::size_t count);

// own = own + other.
void add_to(float* own, const float* other, std::size_t count);

}  // namespace kolo::bench
