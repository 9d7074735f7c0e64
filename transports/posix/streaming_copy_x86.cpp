#include <emmintrin.h>

#include <cstring>

#include "transports/posix/streaming_copy.h"

namespace kolo::posix {

bool has_streaming_stores() noexcept { return true; }

void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t line = 64;
  const std::size_t lines = bytes / line;
  for (std::size_t i = 0; i < lines; ++i) {
    const auto* in = reinterpret_cast<const __m128i*>(from + i * line);
    auto* out = reinterpret_cast<__m128i*>(to + i * line);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  std::memcpy(to + lines * line, from + lines * line, bytes - lines * line);
  _mm_sfence();  // streaming stores are not ordered by anything else
}

}  // namespace kolo::posix
