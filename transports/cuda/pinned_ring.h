// Pinned memory of a pair for staging: a page of words, and a ring of slots each way.
//
// The memory comes from the host transport (Transport::allocate) and is registered with the device.
// If peers can access such memory, they read sent data in place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "transports/cuda/device.h"

namespace kolo::inline v0::cuda {

// Counts of pieces each way, from 0. Streams wait for words that copies write; the shutdown writes
// these too.
struct StagingWords {
  alignas(64) std::atomic<std::uint64_t> handed;  // sending: the stream has produced them
  alignas(64) std::atomic<std::uint64_t> copied;  // sending: they are in pinned slots
  alignas(
      64) std::atomic<std::uint64_t> opened;  // receiving: the stream has freed their destination
  alignas(64) std::atomic<std::uint64_t> landed;  // receiving: they are at their destination
  alignas(64) std::atomic<std::uint64_t> taken;   // receiving: the stream needs them no more
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::size_t kWordsBytes = 4096;
inline constexpr std::size_t kMostPinnedBytes = std::size_t{4} << 20;

// Memory that is registered with the device while this object lives.
class PinnedMemory {
 public:
  PinnedMemory(const Device& device, std::shared_ptr<std::byte[]> memory, std::size_t bytes)
      : device_(device),
        memory_(std::move(memory)),
        address_(device.register_host({memory_.get(), bytes})) {}
  ~PinnedMemory() { device_.unregister_host(memory_.get(), memory_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() const { return memory_.get(); }
  Address address() const { return address_; }  // as the device sees it

 private:
  const Device& device_;
  const std::shared_ptr<std::byte[]> memory_;
  const Address address_;
};

// Slots of one direction, contiguous, so that one copy can cover several pieces.
struct Ring {
  std::byte* slots = nullptr;  // host address
  Address seen = 0;            // device address
  std::size_t segment_bytes = 0;
  std::uint64_t count = 0;

  std::size_t offset(std::uint64_t piece) const { return piece % count * segment_bytes; }
  std::byte* slot(std::uint64_t piece) const { return slots + offset(piece); }
  std::byte* seen_slot(std::uint64_t piece) const {
    return reinterpret_cast<std::byte*>(seen + offset(piece));
  }
  // Number of contiguous slots from that of `piece` on.
  std::uint64_t run_from(std::uint64_t piece) const { return count - piece % count; }
};

// Slots per direction: as many as fit, at most 16.
constexpr std::uint64_t slots_for(std::size_t segment_bytes) {
  const std::uint64_t most = (kMostPinnedBytes - kWordsBytes) / (2 * segment_bytes);
  return most < 16 ? most : 16;
}

}  // namespace kolo::inline v0::cuda
