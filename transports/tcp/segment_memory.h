// Buffers of a channel for segments that are not in the caller's memory: slots to send from, and
// one view to receive into.
//
// Buffers are allocated on demand: a second slot only while the first is not sent yet. Mostly two
// or three are in use, as the kernel takes data at once; slots beyond the third are freed after
// use. Short segments, mostly headers, have cells of their own. A view that is longer than a slot
// and the slots replace each other, because long segments are sent directly from the caller's
// memory and need no slots. So within a host, with segments of 256 KiB, a peer costs 1 MiB and the
// cells; more only while the peer does not read and all slots are full.
#pragma once

#include <array>
#include <cstddef>

#include "transports/base/aligned_memory.h"
#include "transports/transport.h"

namespace kolo::inline v0::tcp {

class SegmentMemory {
 public:
  static constexpr std::size_t kSlots = 5;  // the contract's minimum credit, and one for a header
  static_assert(kSlots > kMinimumCredit);

  // `segment_bytes`: usual length. Longer buffers are kept only while such segments are in use.
  explicit SegmentMemory(std::size_t segment_bytes) : usual_bytes_(segment_bytes) {}

  static constexpr bool is_short(std::size_t bytes) { return bytes <= kCellBytes; }

  // Returns a place for the next segment to send; null if all slots are taken. A short segment uses
  // cell `cell` of kSlots, which must be free. Repeated calls return the same place until
  // take_slot().
  std::byte* find(std::size_t bytes, std::size_t cell);

  bool has_slot() const { return taken_ < kSlots; }
  // As find(), but always returns a slot, even for a short segment.
  std::byte* find_slot(std::size_t bytes);

  // Takes the slot found last, until it is given back. Slots are given back in the order in which
  // they were taken.
  void take_slot();
  void give_slot_back();

  // Returns a buffer for a viewed segment. Repeated calls return the same until end_view().
  std::byte* begin_view(std::size_t bytes);
  void end_view() { is_in_view_ = false; }
  const std::byte* in_view() const { return view_.memory.get(); }

  // Allocated bytes.
  std::size_t bytes() const;

 private:
  static constexpr std::size_t kCellBytes = 2048;
  static constexpr std::size_t kKeptSlots = 3;

  struct Place {
    AlignedMemory memory;
    std::size_t bytes = 0;

    std::byte* of(std::size_t wanted);
    void free();
  };

  bool are_slots_idle() const { return taken_ == 0 && !is_slot_found_; }

  const std::size_t usual_bytes_;
  AlignedMemory cells_;
  std::array<Place, kSlots> slots_;
  std::size_t first_taken_ = 0;
  std::size_t taken_ = 0;
  bool is_slot_found_ = false;  // by find_slot(), and not taken yet
  Place view_;
  bool is_in_view_ = false;
};

}  // namespace kolo::inline v0::tcp
