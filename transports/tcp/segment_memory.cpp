#include "transports/tcp/segment_memory.h"

#include <algorithm>

namespace kolo::inline v0::tcp {

std::byte* SegmentMemory::Place::of(std::size_t wanted) {
  if (memory && wanted <= bytes) return memory.get();
  free();
  memory = allocate_aligned(slot_stride(wanted));
  bytes = wanted;
  return memory.get();
}

void SegmentMemory::Place::free() {
  memory.reset();
  bytes = 0;
}

std::byte* SegmentMemory::find(std::size_t bytes, std::size_t cell) {
  if (is_short(bytes)) {
    constexpr std::size_t kStride = slot_stride(kCellBytes);
    if (!cells_) cells_ = allocate_aligned(kStride * kSlots);
    return cells_.get() + cell * kStride;
  }
  return find_slot(bytes);
}

std::byte* SegmentMemory::find_slot(std::size_t bytes) {
  if (!has_slot()) return nullptr;
  const bool is_usual =
      bytes <= usual_bytes_;  // with longer ones, a long view is needed again soon
  if (is_usual && !is_in_view_ && view_.bytes > usual_bytes_) view_.free();
  is_slot_found_ = true;
  return slots_[(first_taken_ + taken_) % kSlots].of(std::max(bytes, usual_bytes_));
}

void SegmentMemory::take_slot() {
  is_slot_found_ = false;
  ++taken_;
}

void SegmentMemory::give_slot_back() {
  if (first_taken_ >= kKeptSlots) slots_[first_taken_].free();
  first_taken_ = (first_taken_ + 1) % kSlots;
  --taken_;
  if (are_slots_idle()) first_taken_ = 0;  // reuse the first slot, which is still in the cache
}

std::byte* SegmentMemory::begin_view(std::size_t bytes) {
  is_in_view_ = true;
  if (bytes > std::max(usual_bytes_, view_.bytes) && are_slots_idle()) {
    for (Place& slot : slots_) slot.free();
  }
  return view_.of(std::max(bytes, usual_bytes_));
}

std::size_t SegmentMemory::bytes() const {
  const auto held = [](const Place& place) { return place.memory ? slot_stride(place.bytes) : 0; };
  std::size_t sum = held(view_) + (cells_ ? slot_stride(kCellBytes) * kSlots : 0);
  for (const Place& slot : slots_) sum += held(slot);
  return sum;
}

}  // namespace kolo::inline v0::tcp
