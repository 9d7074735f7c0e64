// The memory that a channel keeps for segments which do not leave from the caller's memory, or do
// not arrive in it: slots to send from, and one segment in view.
//
// It comes as it is needed: a second slot only while the first has not left, so that two or three
// are the rule, as the kernel takes what it gets at once. Those beyond the third go again. Short
// segments, headers most of all, have cells of their own. A view that is longer than a slot (of
// sums that leave straight from memory, in segments twice as long) and slots take one another's
// place: what is sent straight needs no slots. So within a host, where segments have 256 KiB, a
// mebibyte and the cells are held for a peer, and more only while a peer that does not read, and a
// kernel that takes no more, leave all slots full.
#pragma once

#include <array>
#include <cstddef>

#include "transports/base/aligned_memory.h"
#include "transports/transport.h"

namespace kolo::tcp {

class SegmentMemory {
 public:
  static constexpr std::size_t kSlots = 5;  // a header's beside the contract's minimum of credit
  static_assert(kSlots > kMinimumCredit);

  // Segments have `segment_bytes` as a rule; longer ones are held as long as they are asked for.
  explicit SegmentMemory(std::size_t segment_bytes) : usual_bytes_(segment_bytes) {}

  static constexpr bool is_short(std::size_t bytes) { return bytes <= kCellBytes; }

  // Where the next segment to be sent may lie; null while all slots are taken. A short one takes
  // the cell `cell` of kSlots, which the caller knows to be free. The same until it is taken.
  std::byte* find(std::size_t bytes, std::size_t cell);

  bool has_slot() const { return taken_ < kSlots; }
  // The same of a slot, however short the segment is.
  std::byte* find_slot(std::size_t bytes);

  // What was found last, for a segment that is not short, is taken until it is given back. What was
  // taken first is given back first.
  void take_slot();
  void give_slot_back();

  // Where a segment may be received to, to be looked at. The same until end_view().
  std::byte* begin_view(std::size_t bytes);
  void end_view() { is_in_view_ = false; }
  const std::byte* in_view() const { return view_.memory.get(); }

  // Held now.
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
  bool is_slot_found_ = false;  // and not yet taken
  Place view_;
  bool is_in_view_ = false;
};

}  // namespace kolo::tcp
