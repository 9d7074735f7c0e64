// Cache lines asked for ahead of their use. Hints: nothing is read or written by them.
#pragma once

#include <cstddef>

namespace kolo::posix {

// Memory that is about to be read.
void prefetch_to_read(const std::byte* at, std::size_t bytes) noexcept;

// Memory that is about to be written: other cores lose it now, and not when stores wait for that.
void prefetch_to_write(const std::byte* at, std::size_t bytes) noexcept;

}  // namespace kolo::posix
