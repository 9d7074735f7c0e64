#include "transports/posix/host/prefetch.h"

namespace kolo::inline v0::posix {

namespace {

constexpr std::size_t kLine = 64;

}  // namespace

void prefetch_to_read(const std::byte* at, std::size_t bytes) noexcept {
  const std::byte* const end = at + bytes;
  for (; at < end; at += kLine) __builtin_prefetch(at, 0);
}

void prefetch_to_write(const std::byte* at, std::size_t bytes) noexcept {
  const std::byte* const end = at + bytes;
  for (; at < end; at += kLine) __builtin_prefetch(at, 1);
}

}  // namespace kolo::inline v0::posix
