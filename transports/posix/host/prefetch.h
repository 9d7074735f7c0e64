// Cache line prefetch. Only hints: they neither read nor write memory.
#pragma once

#include <cstddef>

namespace kolo::inline v0::posix {

// Memory that is about to be read.
void prefetch_to_read(const std::byte* at, std::size_t bytes) noexcept;

// Memory that is about to be written. Takes the lines from other cores now, so later stores do not
// wait.
void prefetch_to_write(const std::byte* at, std::size_t bytes) noexcept;

}  // namespace kolo::inline v0::posix
