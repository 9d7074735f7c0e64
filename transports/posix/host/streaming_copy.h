// A copy by streaming stores, which go past the caches: for memory that is not in this core's own,
// where a plain store would have to wait for each line to come, from another core or from DRAM,
// only to be overwritten.
#pragma once

#include <cstddef>

namespace kolo::posix {

// Whether this processor has such stores; where not, streaming_copy is a plain copy.
bool has_streaming_stores() noexcept;

// As memcpy. Whoever sees a later store of this thread sees the copy.
void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

// The same in pieces: others are sure to see these copies after order_streaming_stores() only.
void streaming_copy_unordered(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
void order_streaming_stores() noexcept;

}  // namespace kolo::posix
