// What the emulations of shared memory are made of: flags that one rank writes and the other waits
// for, and slots of a segment each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace kolo::bench {

inline constexpr std::size_t kSlotBytes = 64 * 1024;
inline constexpr std::size_t kSlotPadding = 1088;  // slots do not share offsets within a page
inline constexpr std::size_t kSlots = 2;  // per rank, so that one is filled while the other is read

// What the cache line of a flag carries beside it.
inline constexpr std::size_t kLineBytes = 56;

// Spins, and yields where the other's core seems to be taken by somebody else.
inline void wait_for(const std::atomic<std::uint64_t>& count, std::uint64_t least) {
  constexpr int kSpins = 20'000;
  for (int spin = 0; count.load(std::memory_order_acquire) < least; ++spin) {
    if (spin > kSpins) std::this_thread::yield();
  }
}

// A count that only grows, alone in its cache line; one rank writes it.
struct alignas(64) Flag {
  std::atomic<std::uint64_t> count{0};

  std::uint64_t get() const { return count.load(std::memory_order_relaxed); }
  void publish(std::uint64_t value) { count.store(value, std::memory_order_release); }
  void wait_for(std::uint64_t value) const { bench::wait_for(count, value); }
};

// Such a line: what it carries is there once its sequence is.
struct alignas(64) FullLine {
  std::atomic<std::uint64_t> sequence{0};
  std::byte bytes[kLineBytes];
};

struct alignas(64) Slot {
  std::byte bytes[kSlotBytes + kSlotPadding];
};

}  // namespace kolo::bench
