// Turns and segments of a schedule's loop (schedule.h defines both): the formulas that executors,
// checker and simulator share.
//
// In turn t, a step of stage s and slice i works on segment (t - s) * slices + i of its chunk, if
// t >= s and the chunk has that segment.
#pragma once

#include <cstddef>

namespace kolo::inline v0 {

// Segments of a chunk of `bytes`; the last one may be shorter.
constexpr std::size_t segments_in(std::size_t bytes, std::size_t segment_bytes) {
  return bytes / segment_bytes + (bytes % segment_bytes != 0 ? 1 : 0);
}

// The segment of a step in `turn`, which must not be before its stage.
constexpr std::size_t segment_in_turn(std::size_t turn, std::size_t stage, std::size_t slice,
                                      int slices) {
  return (turn - stage) * static_cast<std::size_t>(slices) + slice;
}

// Number of turns until a step has worked on all of its chunk's segments.
constexpr std::size_t turns_until_end(std::size_t segments, std::size_t stage, std::size_t slice,
                                      int slices) {
  const auto stride = static_cast<std::size_t>(slices);
  return segments <= slice ? 0 : stage + (segments - slice + stride - 1) / stride;
}

}  // namespace kolo::inline v0
