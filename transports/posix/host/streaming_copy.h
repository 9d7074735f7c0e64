// Memory copy with streaming (non-temporal) stores, which bypass the caches.
//
// For target memory that is not in this core's caches: a plain store would first fetch each line,
// from another core or from DRAM, only to overwrite it.
#pragma once

#include <cstddef>

namespace kolo::inline v0::posix {

// Whether this processor has streaming stores; if not, streaming_copy is a plain copy.
bool has_streaming_stores() noexcept;

// Like memcpy. A thread that sees a later store of this thread also sees the copy.
void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

// Same without the ordering: other threads are sure to see the copy only after
// order_streaming_stores().
void streaming_copy_unordered(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
void order_streaming_stores() noexcept;

}  // namespace kolo::inline v0::posix
