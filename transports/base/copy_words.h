// A copy of a few words through registers, one by one.
//
// A processor hands a load what a store before it has just written without a way through the cache,
// but only where one store has all of it: a copy by vectors of what was written word by word waits
// until the words are in the cache (some 15 cycles, of a message's 200).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kolo {

// The two do not overlap.
inline void copy_words(void* to, const void* from, std::size_t words) {
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(from) + i * sizeof(word), sizeof(word));
    asm volatile("" : "+r"(word));  // no vector, and no call
    std::memcpy(static_cast<std::byte*>(to) + i * sizeof(word), &word, sizeof(word));
  }
}

// memcpy of a few bytes: up to 32 without a call, the same ones twice where the count is no power
// of two.
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

}  // namespace kolo
