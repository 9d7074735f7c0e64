#include <cstring>

#include "transports/posix/host/streaming_copy.h"

namespace kolo::inline v0::posix {

bool has_streaming_stores() noexcept { return false; }

void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  streaming_copy_unordered(to, from, bytes);
}

void streaming_copy_unordered(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void order_streaming_stores() noexcept {}

}  // namespace kolo::inline v0::posix
