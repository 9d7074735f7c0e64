// What lies where in the memory that two ranks share.
//
// A *side* is one of the two: 0 the lower rank, 1 the higher. Each side makes one region when it
// first has to do with the other, and hands it over: a *control*, which it writes and the other
// reads, a ring of frames, which it fills, and as many slots as the other.
//
//     header | control | frames | slots
//
// So each can send before the other has looked up, and when both begin at once nothing that was
// written has to move.
//
// A *frame* announces segments: four cache lines, of which the first word says what there is, and
// which carries tiny segments itself. Those of up to 56 bytes together cross with their
// announcement in one transfer of one line; the lines behind it are found together, where a slot
// would have to be looked up first and handed back after. Anything longer lies in a slot that the
// frame names. Frames are used in turn, and a word carries the low bits of its frame's number: a
// reader knows a new word from the one of the lap before, and nobody ever clears anything.
//
// Long segments need no slot where the peer can reach their memory: the frame then carries an
// *offer*, which says where they lie, in a region that the peer has mapped (regions.h) or in the
// process, from where the kernel copies (peer_memory.h). The frame is consumed when the peer is
// done with that memory.
//
// *Slots change hands.* A core that reads a line and then writes it pays for one transfer between
// the caches; where one core always writes and the other always reads, both of these are transfers,
// and the writer's is the slower one, as stores wait in line. So whoever sends on a channel as well
// keeps a slot that it has received, to send the next segment in, and gives another of its own back
// instead: one for each slot that it has sent, answered ones apart, so that streams of one
// direction, from which nothing comes back, stay within their slots. Two ranks that exchange 64 KiB
// take a third of the time so (3.1 us instead of 9.3, cores near; 4 KiB: 0.35 instead of 0.6). A
// side's slots are used the latest touched first. The peer's count of what it is done with is read
// only when none is left; reading it for each segment was 3 to 8 % slower at 512 KiB and no faster
// at 8 MiB. The stride is a few lines more than the segment, so that no two slots share page
// offsets (loads would be held up by unrelated stores).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transports/shm/copy_choice.h"
#include "transports/transport.h"

namespace kolo::shm {

inline constexpr std::uint64_t kMagic = 0x316d68732d6f6c6b;  // "klo-shm1"
inline constexpr std::uint32_t kLayoutVersion = 5;

// Two cache lines: processors fetch them in pairs, and neighbours would disturb one another.
inline constexpr std::size_t kApart = 128;

inline constexpr std::uint32_t kFrames = 64;
inline constexpr std::size_t kFrameBytes = 248;  // of tiny segments, and an offer behind them
inline constexpr std::size_t kTinyBytes = 192;   // of the longest: 56 bytes open an operation
inline constexpr int kMostSlots = 8;
inline constexpr std::size_t kShortestOffer = 8 * 1024;  // below, a slot is as good
inline constexpr std::size_t kSlotPadding = 5 * kSegmentAlignment;
inline constexpr std::size_t kLongestSegment =
    512 * 1024;  // four slots of these each way make 4 MiB

using SharedWord = std::atomic<std::uint64_t>;
static_assert(SharedWord::is_always_lock_free, "two processes share it");

// A frame's first word, unpacked.
struct Announcement {
  unsigned tiny_segments = 0;  // at most 15
  unsigned tiny_words = 0;     // 8-byte words that they take
  bool has_slot = false;       // one more segment follows, in a slot
  bool is_answered = false;    // and it is to be answered
  bool is_offered = false;     // it lies not in a slot but where the Offer says, behind the words
  bool is_timed = false;       // the receiver shall time it, for copy_choice.h:
  bool is_streamed = false;    // this is the way that it came,
  bool is_received = false;    // and this how it is taken
  unsigned slot = 0;
  std::size_t slot_bytes = 0;  // of its segment
};

inline constexpr unsigned kMostTinySegments = 15;

// That `bytes` of a tiny segment take.
constexpr unsigned words_of(std::size_t bytes) { return static_cast<unsigned>((bytes + 7) / 8); }

constexpr std::uint64_t frame_tag(std::uint64_t frame) { return (frame + 1) & 0xffff; }

// `frame`: its number, of which 16 bits travel.
constexpr std::uint64_t pack(const Announcement& a, std::uint64_t frame) {
  return frame_tag(frame) | std::uint64_t{a.tiny_segments} << 16 |
         std::uint64_t{a.tiny_words} << 59 | std::uint64_t{a.is_answered} << 23 |
         std::uint64_t{a.slot_bytes} << 24 | std::uint64_t{a.has_slot} << 48 |
         std::uint64_t{a.slot} << 49 | std::uint64_t{a.is_offered} << 55 |
         std::uint64_t{a.is_timed} << 56 | std::uint64_t{a.is_streamed} << 57 |
         std::uint64_t{a.is_received} << 58;
}

// Of tiny segments and nothing else, which most frames are.
constexpr std::uint64_t pack_tiny(unsigned segments, unsigned words, std::uint64_t frame) {
  return frame_tag(frame) | std::uint64_t{segments} << 16 | std::uint64_t{words} << 59;
}
static_assert(pack_tiny(2, 7, 5) == pack({.tiny_segments = 2, .tiny_words = 7}, 5));

// In its place, as it is read field by field: a copy would wait for them (copy_words.h).
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

// What a sleeping rank waits for; it wakes for nothing else.
enum Event : std::uint64_t { kData = 1, kCredit = 2, kAnswer = 4, kAnyEvent = 7 };

// Which slot comes back for each of the latest kFrames frames, 4 bits each: the frame's own, or one
// in exchange.
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

// Written by one side, read by the other, but for `asleep`, which the waker clears; `closed` is
// read by an instruction that could write. A line each.
struct Control {
  alignas(kApart) SharedWord consumed;  // of the other's frames: those that are done with
  ReturnedSlots returned;               // for these
  alignas(kApart) SharedWord answered;  // of the other's segments: those that are answered
  alignas(kApart) SharedWord asleep;    // a set of Events; 0: awake
  alignas(kApart) SharedWord closed;    // 1: no more will come, and that is in order
  alignas(kApart) SharedWord reads;     // 1: this side can read the other process's memory
  alignas(kApart) SharedWord times[PublishedTimes::kWords];  // what reading takes it
};

// What is read of a peer whose region has not come: it has done nothing, and as nobody knows
// whether it sleeps, whoever has news for it looks whether it has come.
struct NoPeer {
  NoPeer() { control.asleep.store(kAnyEvent, std::memory_order_relaxed); }

  Control control{};
  Frame frame{};  // the first: no other is looked at
};

// The other side holds it against its own figures: a peer of another build or with other settings
// is an error, not a crash.
struct alignas(kApart) Header {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kLayoutVersion;
  std::int32_t ranks[2] = {0, 0};  // whose region it is, and for whom
  std::uint32_t slots = 0;
  std::uint64_t segment_bytes = 0;

  bool operator==(const Header&) const = default;
};

// The arithmetic of one region, from the two figures that may differ between jobs. Slots are
// numbered through both: those of a side begin with side * slots().
class Layout {
 public:
  explicit Layout(std::size_t segment_bytes)
      : segment_bytes_(segment_bytes),
        slots_(segment_bytes > kLongestSegment / 2 ? 4 : kMostSlots) {}

  std::size_t segment_bytes() const { return segment_bytes_; }
  int slots() const { return slots_; }  // of each side

  static constexpr std::size_t control_offset() { return sizeof(Header); }
  static constexpr std::size_t frames_offset() { return control_offset() + sizeof(Control); }

  // In its side's region. Within a page the slots of side 1 lie as if they followed those of
  // side 0.
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

}  // namespace kolo::shm
