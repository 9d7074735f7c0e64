// Layout of the memory that two ranks share.
//
// A *side* is one of the two: 0 the lower rank, 1 the higher. Each side makes one region on first
// use and passes it to the other side. The region contains a *control* (written by its owner, read
// by the other side), a ring of frames filled by its owner, and slots.
//
//     header | control | frames | slots
//
// So each side can send before the other has mapped anything. If both start at once, no written
// data has to move.
//
// A *frame* announces segments. It has four cache lines; its first word describes the content. Tiny
// segments lie in the frame itself. Up to 56 bytes cross in one cache line with their announcement.
// The lines behind it need no slot to be looked up and returned. A longer segment lies in a slot
// that the frame names. Frames are used as a ring, and the word contains the low bits of its
// frame's number. So a reader can tell a new word from one of the previous round, and no word is
// ever cleared.
//
// A long segment needs no slot if the peer can reach its memory. The frame then carries an *offer*:
// a place in a region that the peer has mapped (regions.h), or an address in the process, from
// which the kernel copies (peer_memory.h). The frame counts as consumed when the peer no longer
// needs that memory.
//
// *Slots change owners.* If one core always writes a cache line and the other always reads it, both
// the write and the read transfer the line between caches. The write is the slower transfer, as
// stores are queued. A core that reads a line and then writes it pays for one transfer only. So a
// side that sends as well keeps a received slot for its next segment, and returns another of its
// own slots. It keeps one slot for each slot that it has sent, answered ones not counted; so
// one-way streams stay within their slots. Exchanges of two ranks take a third of the time at 64
// KiB (3.1 us instead of 9.3, near cores) and 0.35 us instead of 0.6 at 4 KiB.
//
// The most recently touched slot is used first. The peer's consumed count is read only when no slot
// is left: reading it for each segment was 3 to 8 % slower at 512 KiB and no faster at 8 MiB. The
// stride is a few cache lines longer than a segment, so that no two slots share page offsets;
// otherwise unrelated stores would delay loads (4K aliasing).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transports/shm/copy_choice.h"
#include "transports/transport.h"

namespace kolo::inline v0::shm {

inline constexpr std::uint64_t kMagic = 0x316d68732d6f6c6b;  // "klo-shm1"
inline constexpr std::uint32_t kLayoutVersion = 6;

// Two cache lines: processors prefetch lines in pairs, which causes false sharing.
inline constexpr std::size_t kApart = 128;

inline constexpr std::uint32_t kFrames = 64;
inline constexpr std::size_t kFrameBytes = 248;  // for tiny segments, and an offer behind them
inline constexpr std::size_t kTinyBytes = 192;   // longest tiny segment; 56 bytes open an operation
inline constexpr int kMostSlots = 8;
inline constexpr std::size_t kShortestOffer = 8 * 1024;  // below, a slot is as fast
inline constexpr std::size_t kSlotPadding = 5 * kSegmentAlignment;
inline constexpr std::size_t kLongestSegment =
    512 * 1024;  // four slots of these each way make 4 MiB

using SharedWord = std::atomic<std::uint64_t>;
static_assert(SharedWord::is_always_lock_free, "two processes share it");

// A frame's first word, unpacked.
struct Announcement {
  unsigned tiny_segments = 0;  // at most 15
  unsigned tiny_words = 0;     // their total length in 8-byte words
  bool has_slot = false;       // one more segment follows, in a slot
  bool is_answered = false;    // the receiver must answer that segment
  bool is_offered = false;  // that segment lies at an Offer, which follows the words, not in a slot
  bool is_timed = false;    // the receiver must time that segment (copy_choice.h)
  bool is_streamed = false;  // the sender wrote it by streaming stores
  bool is_received = false;  // the sender expects receive(), not view()
  unsigned slot = 0;
  std::size_t slot_bytes = 0;  // length of that segment
};

inline constexpr unsigned kMostTinySegments = 15;

// Words for a tiny segment of `bytes`.
constexpr unsigned words_of(std::size_t bytes) { return static_cast<unsigned>((bytes + 7) / 8); }

constexpr std::uint64_t frame_tag(std::uint64_t frame) { return (frame + 1) & 0xffff; }

// `frame`: its number, of which the word carries 16 bits.
constexpr std::uint64_t pack(const Announcement& a, std::uint64_t frame) {
  return frame_tag(frame) | std::uint64_t{a.tiny_segments} << 16 |
         std::uint64_t{a.tiny_words} << 59 | std::uint64_t{a.is_answered} << 23 |
         std::uint64_t{a.slot_bytes} << 24 | std::uint64_t{a.has_slot} << 48 |
         std::uint64_t{a.slot} << 49 | std::uint64_t{a.is_offered} << 55 |
         std::uint64_t{a.is_timed} << 56 | std::uint64_t{a.is_streamed} << 57 |
         std::uint64_t{a.is_received} << 58;
}

// Word of a frame with tiny segments only, as most frames are.
constexpr std::uint64_t pack_tiny(unsigned segments, unsigned words, std::uint64_t frame) {
  return frame_tag(frame) | std::uint64_t{segments} << 16 | std::uint64_t{words} << 59;
}
static_assert(pack_tiny(2, 7, 5) == pack({.tiny_segments = 2, .tiny_words = 7}, 5));

// Unpacks in place. Returning a struct would copy it right after single fields were stored, which
// stalls store forwarding (copy_words.h).
constexpr void unpack(std::uint64_t word, Announcement& a) {
  a.tiny_segments = (word >> 16) & 15;
  a.tiny_words = static_cast<unsigned>(word >> 59);
  a.is_answered = ((word >> 23) & 1) != 0;
  a.slot_bytes = (word >> 24) & 0xffffff;
  a.has_slot = ((word >> 48) & 1) != 0;
  a.slot = static_cast<unsigned>((word >> 49) & 63);
  a.is_offered = ((word >> 55) & 1) != 0;
  a.is_timed = ((word >> 56) & 1) != 0;
  a.is_streamed = ((word >> 57) & 1) != 0;
  a.is_received = ((word >> 58) & 1) != 0;
}

struct alignas(kApart) Frame {
  SharedWord word;
  std::byte tiny[kFrameBytes];
};
static_assert(sizeof(Frame) == 2 * kApart);

// Events that a sleeping rank waits for. No other event wakes it.
enum Event : std::uint64_t { kData = 1, kCredit = 2, kAnswer = 4, kAnyEvent = 7 };

// Returned slot for each of the latest kFrames frames, 4 bits each: the frame's own slot, or
// another one in exchange.
struct ReturnedSlots {
  static constexpr std::uint32_t kPerWord = 16;
  static_assert(2 * kMostSlots <= 16);

  SharedWord words[kFrames / kPerWord];

  void set(std::uint64_t frame, unsigned slot) {
    SharedWord& word = words[frame % kFrames / kPerWord];
    const unsigned shift = 4 * (frame % kPerWord);
    const std::uint64_t others =
        word.load(std::memory_order_relaxed) & ~(std::uint64_t{15} << shift);
    word.store(others | std::uint64_t{slot} << shift, std::memory_order_relaxed);
  }
  unsigned of(std::uint64_t frame) const {
    const std::uint64_t word = words[frame % kFrames / kPerWord].load(std::memory_order_relaxed);
    return (word >> (4 * (frame % kPerWord))) & 15;
  }
};

// State written by one side and read by the other. Exceptions: the waking side clears `asleep`, and
// `closed` is read by an atomic read-modify-write. Each member has its own cache lines.
struct Control {
  alignas(kApart) SharedWord consumed;  // count of the other side's frames that are consumed
  ReturnedSlots returned;               // for these frames
  alignas(kApart) SharedWord answered;  // count of the other side's segments that are answered
  alignas(kApart) SharedWord asleep;    // a set of Events; 0: awake
  alignas(kApart) SharedWord closed;    // 1: orderly end, no more data will come
  alignas(kApart) SharedWord reads;     // 1: this side can read the other process's memory
  alignas(kApart) SharedWord core;      // 1 + the core of this side's latest long wait; 0: unknown
  alignas(kApart) SharedWord times[PublishedTimes::kWords];  // this side's times for reading
};

// Stands for a peer whose region has not arrived: no frames, no counts. It seems asleep, so that
// each send makes this rank check whether the region has arrived.
struct NoPeer {
  NoPeer() { control.asleep.store(kAnyEvent, std::memory_order_relaxed); }

  Control control{};
  Frame frame{};  // only the first frame is read
};

// The other side compares it with its own figures, so that a peer of a different build or with
// other settings is an error, not a crash.
struct alignas(kApart) Header {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kLayoutVersion;
  std::int32_t ranks[2] = {0, 0};  // the region's owner and its peer
  std::uint32_t slots = 0;
  std::uint64_t segment_bytes = 0;

  bool operator==(const Header&) const = default;
};

// Offsets in a region, for one segment length. Slots are numbered across both regions: those of a
// side begin with side * slots().
class Layout {
 public:
  explicit Layout(std::size_t segment_bytes)
      : segment_bytes_(segment_bytes),
        slots_(segment_bytes > kLongestSegment / 2 ? 4 : kMostSlots) {}

  std::size_t segment_bytes() const { return segment_bytes_; }
  int slots() const { return slots_; }  // of each side

  static constexpr std::size_t control_offset() { return sizeof(Header); }
  static constexpr std::size_t frames_offset() { return control_offset() + sizeof(Control); }

  // Offset in the region of the slot's side. Within a page, the slots of side 1 lie as if they
  // followed those of side 0, so that no two slots share page offsets.
  std::size_t slot_offset(int slot) const {
    const std::size_t shift = slot < slots_ ? 0 : shift_of_side_1();
    return kSlotsOffset + shift + at(slot % slots_) * stride();
  }
  std::size_t stride() const { return segment_bytes_ + kSlotPadding; }
  std::size_t bytes() const { return kSlotsOffset + shift_of_side_1() + at(slots_) * stride(); }

 private:
  static constexpr std::size_t at(int index) { return static_cast<std::size_t>(index); }
  static constexpr std::size_t kSlotsOffset =
      sizeof(Header) + sizeof(Control) + kFrames * sizeof(Frame);
  std::size_t shift_of_side_1() const { return at(slots_) * stride() % 4096; }

  std::size_t segment_bytes_;
  int slots_;
};

}  // namespace kolo::inline v0::shm
