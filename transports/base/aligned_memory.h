// Memory for slots and views, aligned to kSegmentAlignment. It is not initialised, so it costs
// nothing until its first use.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "transports/transport.h"

namespace kolo::inline v0 {

struct FreeAligned {
  void operator()(std::byte* memory) const {
    ::operator delete[](memory, std::align_val_t{kSegmentAlignment});
  }
};
using AlignedMemory = std::unique_ptr<std::byte[], FreeAligned>;

inline AlignedMemory allocate_aligned(std::size_t bytes) {
  return AlignedMemory(
      static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{kSegmentAlignment})));
}

// Distance from one slot to the next. Slots start at different offsets in their pages, otherwise
// they would compete for the same few cache sets.
constexpr std::size_t slot_stride(std::size_t segment_bytes) {
  return (segment_bytes + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment +
         9 * kSegmentAlignment;
}

}  // namespace kolo::inline v0
