// Flags and slots of the shared-memory emulations: one rank writes a flag, and the other waits for
// it. A slot holds a segment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace kolo::bench {

inline constexpr std::size_t kSlotBytes = 64 * 1024;
inline constexpr std::size_t kSlotPadding = 1088;  // keeps slots at different offsets within a page
inline constexpr std::size_t kSlots = 2;  // per rank: one is filled while the other is read

// Payload bytes that fit into the cache line of a flag.
inline constexpr std::size_t kLineBytes = 56;

// Spins, then yields, as the other rank's core may be busy with another program.
inline void wait_for(const std::atomic<std::uint64_t>& count, std::uint64_t least) {
  constexpr int kSpins = 20'000;
  for (int spin = 0; count.load(std::memory_order_acquire) < least; ++spin) {
    if (spin > kSpins) std::this_thread::yield();
  }
}

// An increasing count in a cache line of its own, written by one rank.
struct alignas(64) Flag {
  std::atomic<std::uint64_t> count{0};

  std::uint64_t get() const { return count.load(std::memory_order_relaxed); }
  void publish(std::uint64_t value) { count.store(value, std::memory_order_release); }
  void wait_for(std::uint64_t value) const { bench::wait_for(count, value); }
};

// A cache line with payload, which is valid once the sequence number is.
struct alignas(64) FullLine {
  std::atomic<std::uint64_t> sequence{0};
  std::byte bytes[kLineBytes];
};

struct alignas(64) Slot {
  std::byte bytes[kSlotBytes + kSlotPadding];
};

}  // namespace kolo::bench
