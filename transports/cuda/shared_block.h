// What two ranks share in host memory: the words that their streams wait for, and what their hosts
// tell each other.
//
// Each rank owns a memfd with a Block for every peer, and waits for nothing but words in there; the
// peers map it, and their streams (or hosts) write them. So a rank can always free its own streams:
// quiesce writes kReleased to every word that they may wait for.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "transports/cuda/ipc_exports.h"

namespace kolo::cuda {

// At least as much as any count, as streams compare: (int64)(word - value) >= 0. The highest number
// of all would be less than 1.
inline constexpr std::uint64_t kReleased = std::uint64_t{1} << 62;

// What the sender's host says of a segment that goes by send().
struct Announcement {
  std::uint64_t bytes = 0;        // of the segment
  std::uint64_t is_straight = 0;  // 1: it lies at `place`; 0: it comes through the slots
  std::uint64_t gone = 0;         // an allocation of the sender's that is to be closed; 0: none
  Exported place;
};

inline constexpr std::uint64_t kAnnouncements = 32;

// How a rank closes: when its streams have done all that it enqueued, or before.
enum class Closing : std::uint32_t { kNot, kDone, kAborted };

// A word of captured work, which streams write over and over: they write the low half only and wait
// for the whole, so that what a host has written to the high half stays.
struct CapturedWord {
  static constexpr std::uint32_t kReleasedHigh = kReleased >> 32;

  alignas(64) std::atomic<std::uint32_t> low;
  std::atomic<std::uint32_t> high;
};

// Where captured work is, as its stream says.
enum class Stage : std::uint32_t { kNone, kBegun, kJoined };

// What captured_channel.h says. 0, all of it, while nothing is replayed.
struct CapturedWords {
  CapturedWord ready;    // 1: the peer has begun, and takes pieces
  CapturedWord arrived;  // pieces that the peer has sent, and at last one more
  CapturedWord freed;    // pieces of the owner's that it has taken
  CapturedWord stage;    // a Stage; the owner's streams write it, and its host reads it
};

// A peer writes, the owner reads.
struct Block {
  alignas(64) std::atomic<std::uint64_t> arrived;    // pieces that the peer has sent
  alignas(64) std::atomic<std::uint64_t> freed;      // pieces of the owner's that it has taken
  alignas(64) std::atomic<std::uint64_t> announced;  // announcements that it has made
  alignas(64) std::atomic<std::uint64_t> read;  // of the owner's announcements, how many it read
  alignas(64) std::atomic<std::uint32_t> is_closing;  // a Closing: it sends and takes no more
  std::atomic<std::uint32_t> has_closed;              // it has nothing of the owner's mapped
  alignas(64) std::array<Announcement, kAnnouncements> ring;
  CapturedWords captured;
  alignas(64) Exported captured_slots;            // of the peer's, for the owner's pieces
  std::atomic<std::uint32_t> has_captured_slots;  // it has said where
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(offsetof(CapturedWord, high) == 4 && std::endian::native == std::endian::little);

inline constexpr std::size_t kBlockBytes = (sizeof(Block) + 4095) / 4096 * 4096;

}  // namespace kolo::cuda
