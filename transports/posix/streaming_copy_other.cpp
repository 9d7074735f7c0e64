#include <cstring>

#include "transports/posix/streaming_copy.h"

namespace kolo::posix {

bool has_streaming_stores() noexcept { return false; }

void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

}  // namespace kolo::posix
