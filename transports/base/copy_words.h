// Copy of a few words, one by one through registers.
//
// It keeps store-to-load forwarding, which needs all bytes of a load from one store. A vector load
// of words that were just stored one by one waits until they are in the cache: about 15 cycles, of
// a message's 200.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kolo::inline v0 {

// The ranges must not overlap.
inline void copy_words(void* to, const void* from, std::size_t words) {
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(from) + i * sizeof(word), sizeof(word));
    asm volatile("" : "+r"(word));  // prevents a vector copy or a call
    std::memcpy(static_cast<std::byte*>(to) + i * sizeof(word), &word, sizeof(word));
  }
}

// memcpy of a few bytes, without a call up to 32 bytes. If the count is not a power of two, some
// bytes are copied twice.
inline void copy_few(std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto both_ends = [=](auto word) {
    auto last = word;
    std::memcpy(&word, from, sizeof(word));
    std::memcpy(&last, from + bytes - sizeof(word), sizeof(word));
    std::memcpy(to, &word, sizeof(word));
    std::memcpy(to + bytes - sizeof(word), &last, sizeof(word));
  };
  struct Sixteen {
    std::uint64_t words[2];
  };
  if (bytes > 32) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= 16) {
    both_ends(Sixteen{});
  } else if (bytes >= 8) {
    both_ends(std::uint64_t{});
  } else if (bytes >= 4) {
    both_ends(std::uint32_t{});
  } else {
    for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
}

}  // namespace kolo::inline v0
