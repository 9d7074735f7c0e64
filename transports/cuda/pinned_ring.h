// What a pair has in pinned memory for staging: a page of words, and a ring of slots each way.
//
// The memory is the host transport's (Transport::allocate), made visible to the device: so where
// peers can reach such memory, what is sent from here is read where it lies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "transports/cuda/device.h"

namespace kolo::cuda {

// Pieces, counted each way from 0. What streams wait for is written by copies, and by the end.
struct StagingWords {
  alignas(64) std::atomic<std::uint64_t> handed;  // out: the stream has made them
  alignas(64) std::atomic<std::uint64_t> copied;  // out: they lie in pinned slots
  alignas(64) std::atomic<std::uint64_t> opened;  // in: the stream lets them come to their place
  alignas(64) std::atomic<std::uint64_t> landed;  // in: they lie there
  alignas(64) std::atomic<std::uint64_t> taken;   // in: the stream needs them there no more
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::size_t kWordsBytes = 4096;
inline constexpr std::size_t kMostPinnedBytes = std::size_t{4} << 20;

// Memory that is visible to the device as long as this lives.
class PinnedMemory {
 public:
  PinnedMemory(const Device& device, std::shared_ptr<std::byte[]> memory, std::size_t bytes)
      : device_(device),
        memory_(std::move(memory)),
        address_(device.register_host({memory_.get(), bytes})) {}
  ~PinnedMemory() { device_.unregister_host(memory_.get()); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() const { return memory_.get(); }
  Address address() const { return address_; }  // as the device sees it

 private:
  const Device& device_;
  const std::shared_ptr<std::byte[]> memory_;
  const Address address_;
};

// One direction's slots, one beside the other, so that several pieces can be copied at once.
struct Ring {
  std::byte* slots = nullptr;  // as the host sees them
  Address seen = 0;            // as the device does
  std::size_t segment_bytes = 0;
  std::uint64_t count = 0;

  std::size_t offset(std::uint64_t piece) const { return piece % count * segment_bytes; }
  std::byte* slot(std::uint64_t piece) const { return slots + offset(piece); }
  std::byte* seen_slot(std::uint64_t piece) const {
    return reinterpret_cast<std::byte*>(seen + offset(piece));
  }
  // How many slots follow one another from that of `piece` on.
  std::uint64_t run_from(std::uint64_t piece) const { return count - piece % count; }
};

// As many slots a direction as there is room for, up to 16.
constexpr std::uint64_t slots_for(std::size_t segment_bytes) {
  const std::uint64_t most = (kMostPinnedBytes - kWordsBytes) / (2 * segment_bytes);
  return most < 16 ? most : 16;
}

}  // namespace kolo::cuda
