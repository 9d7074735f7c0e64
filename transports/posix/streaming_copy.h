// A copy by streaming stores, which go past the caches: for memory that another core has in its
// own, where a plain store would have to wait for each line to come from there.
#pragma once

#include <cstddef>

namespace kolo::posix {

// Whether this processor has such stores; where not, streaming_copy is a plain copy.
bool has_streaming_stores() noexcept;

// As memcpy; `to` is aligned to 16 bytes. Whoever sees a later store of this thread sees the copy.
void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace kolo::posix
