#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "transports/posix/host/streaming_copy.h"

namespace kolo::inline v0::posix {

namespace {

constexpr std::size_t kLine = 64;

// Bytes before the first whole line at `to`.
std::size_t head_of(const std::byte* to, std::size_t bytes) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % kLine;
  return past == 0 ? 0 : std::min(kLine - past, bytes);
}

}  // namespace

bool has_streaming_stores() noexcept { return true; }

void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  streaming_copy_unordered(to, from, bytes);
  order_streaming_stores();
}

// Streams whole lines only: a partly written line would have to be read first.
void streaming_copy_unordered(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t head = head_of(to, bytes);
  if (head > 0) std::memcpy(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  const std::size_t lines = bytes / kLine;
  for (std::size_t i = 0; i < lines; ++i) {
    const auto* in = reinterpret_cast<const __m128i*>(from + i * kLine);
    auto* out = reinterpret_cast<__m128i*>(to + i * kLine);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  const std::size_t tail = bytes - lines * kLine;
  if (tail > 0) std::memcpy(to + lines * kLine, from + lines * kLine, tail);
}

void order_streaming_stores() noexcept { _mm_sfence(); }

}  // namespace kolo::inline v0::posix
