// Words and announcements that two ranks share in host memory.
//
// Each rank owns a memfd with one Block per peer. A rank waits only for words in its own memfd; the
// peers map it, and their streams or hosts write the words. So a rank can always release its own
// streams: quiesce writes kReleased to every word that they may wait for.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "transports/cuda/ipc_exports.h"

namespace kolo::inline v0::cuda {

// Not less than any count by the streams' comparison, (int64)(word - value) >= 0. The largest
// uint64 would compare as less than 1.
inline constexpr std::uint64_t kReleased = std::uint64_t{1} << 62;

// Message from the sender's host about a segment of send().
struct Announcement {
  std::uint64_t bytes = 0;        // of the segment
  std::uint64_t is_straight = 0;  // 1: zero copy from `place`; 0: through the slots
  std::uint64_t is_offered = 0;   // 1: the answer goes to `answer`
  std::uint64_t gone = 0;         // an allocation of the sender that was freed; 0: none
  Exported place;
  Exported answer;
};

inline constexpr std::uint64_t kAnnouncements = 32;

// How a rank closes: after its streams have done all enqueued work, or before.
enum class Closing : std::uint32_t { kNot, kDone, kAborted };

// Word of captured work, which streams write repeatedly. They write the low half only and wait for
// the whole word, so a value that a host wrote to the high half stays.
struct CapturedWord {
  static constexpr std::uint32_t kReleasedHigh = kReleased >> 32;

  alignas(64) std::atomic<std::uint32_t> low;
  std::atomic<std::uint32_t> high;
};

// State of captured work, written by its stream.
enum class Stage : std::uint32_t { kNone, kBegun, kJoined };

// Words of captured_channel.h. All are 0 while no replay runs.
struct CapturedWords {
  CapturedWord ready;    // 1: the peer has begun, and takes pieces
  CapturedWord arrived;  // pieces that the peer has sent, plus one at its end
  CapturedWord freed;    // pieces of the owner that the peer has taken
  CapturedWord stage;    // a Stage; written by the owner's streams, read by its host
};

// The peer writes, the owner reads.
struct Block {
  alignas(64) std::atomic<std::uint64_t> arrived;     // pieces that the peer has sent
  alignas(64) std::atomic<std::uint64_t> freed;       // pieces of the owner that the peer has taken
  alignas(64) std::atomic<std::uint64_t> announced;   // announcements that the peer has made
  alignas(64) std::atomic<std::uint64_t> read;        // announcements of the owner that it has read
  alignas(64) std::atomic<std::uint32_t> is_closing;  // a Closing: the peer sends and takes no more
  std::atomic<std::uint32_t> has_closed;  // the peer has unmapped all memory of the owner
  // The rank, plus 1, that the peer has lost: its streams no longer wait for that rank, and their
  // data may be wrong. 0: none.
  std::atomic<std::uint32_t> lost;
  alignas(64) std::array<Announcement, kAnnouncements> ring;
  CapturedWords captured;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(offsetof(CapturedWord, high) == 4 && std::endian::native == std::endian::little);

inline constexpr std::size_t kBlockBytes = (sizeof(Block) + 4095) / 4096 * 4096;

}  // namespace kolo::inline v0::cuda
