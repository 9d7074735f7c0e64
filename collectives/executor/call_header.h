// Header that opens a channel for an operation: which rank calls what.
//
// On every channel direction that a schedule uses, the first segment has kHeaderSegmentBytes in
// every operation. It holds a CallHeader, and room for the first payload segment if that fits. So
// ranks that call different operations can still read each other's first segment, and a mismatch is
// an error instead of a hang. It costs no round trip, and small operations travel in one cache
// line.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "collectives/element.h"
#include "collectives/schedule.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

struct CallHeader {
  std::uint16_t magic = 0x4b31;  // version of this format, "K1"
  Collective collective = Collective::kBarrier;
  std::uint8_t algorithm = 0;  // row of algorithms()
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::uint16_t root = 0;
  std::uint32_t sequence = 0;        // operations of this communicator before this one
  std::uint32_t segment_units = 0;   // segment bytes / kSegmentAlignment, and flags
  std::uint64_t count_and_plan = 0;  // elements << 16 | hash of the server plan

  friend bool operator==(const CallHeader& one, const CallHeader& other) {
    return one.is(reinterpret_cast<const std::byte*>(&other));
  }

  // True if `bytes` are equal to this header: compares three words, without a call.
  bool is(const std::byte* bytes) const {
    return ((word(this, 0) ^ word(bytes, 0)) | (word(this, 1) ^ word(bytes, 1)) |
            (word(this, 2) ^ word(bytes, 2))) == 0;
  }

  // True if the headers are equal except for their sequences.
  bool is_like(const CallHeader& other) const {
    return ((word(this, 0) ^ word(&other, 0)) | ((word(this, 1) ^ word(&other, 1)) & ~kSequence) |
            (word(this, 2) ^ word(&other, 2))) == 0;
  }

  // This header with another sequence. Writes the whole 8-byte word: a load of a word just after a
  // partial store stalls the processor (failed store forwarding).
  CallHeader with(std::uint32_t other_sequence) const {
    CallHeader header = *this;
    header.set_sequence(other_sequence);
    return header;
  }
  void set_sequence(std::uint32_t other_sequence) {
    const std::uint64_t changed = (word(this, 1) & ~kSequence) | other_sequence;
    std::memcpy(reinterpret_cast<std::byte*>(this) + sizeof(changed), &changed, sizeof(changed));
  }

  std::uint64_t count() const { return count_and_plan >> 16; }

  // The data travels on the stream side of the channel, and only the header on the host side. The
  // receiver must not read the data on the host side.
  static constexpr std::uint32_t kOnStream = std::uint32_t{1} << 31;
  bool is_on_stream() const { return !is_user() && (segment_units & kOnStream) != 0; }

  // Set together with kOnStream if the call is captured into a graph.
  static constexpr std::uint32_t kCaptured = std::uint32_t{1} << 30;
  bool is_captured() const { return !is_user() && (segment_units & kCaptured) != 0; }

  // A user function's elements have no type, so the fields mean something else. `type` is unused.
  // segment_units has the element's bytes in its upper half (so segments have at most 4 MiB).
  // count_and_plan has the function's tag instead of the hash. The hash is in `root`: collectives
  // with a root have no hash.
  bool is_user() const { return op == ReduceOp::kUser; }
  std::uint16_t tag() const { return static_cast<std::uint16_t>(count_and_plan & 0xffff); }
  std::uint32_t units() const {
    return segment_units & (is_user() ? 0xffffU : ~(kOnStream | kCaptured));
  }
  std::size_t bytes_of_element() const {
    return is_user() ? segment_units >> 16 : element_bytes(type);
  }
  // A whole number of elements.
  std::size_t segment_bytes() const {
    const std::size_t bytes = units() * kSegmentAlignment;
    // A peer's header is not trusted: it may claim elements of 0 bytes.
    return is_user() && bytes_of_element() != 0 ? bytes - bytes % bytes_of_element() : bytes;
  }

 private:
  static constexpr std::uint64_t kSequence = 0xffffffff;  // of the second word

  static std::uint64_t word(const void* header, std::size_t index) {
    std::uint64_t value = 0;
    std::memcpy(&value, static_cast<const std::byte*>(header) + index * sizeof(value),
                sizeof(value));
    return value;
  }
};
static_assert(sizeof(CallHeader) == 24);
static_assert(std::endian::native == std::endian::little);

static_assert(std::has_unique_object_representations_v<CallHeader>);

inline constexpr std::size_t kHeaderSegmentBytes =
    56;  // one cache line in shm, without its word of 8 bytes
inline constexpr std::size_t kInlinePayloadBytes = kHeaderSegmentBytes - sizeof(CallHeader);
inline constexpr std::uint64_t kLongestCount = (std::uint64_t{1} << 48) - 1;

// "all_reduce #182 of 1000 float32 sum", "broadcast #7 of 5 int32 from root 0", "scan #1 of 7
// elements of 12 bytes by user function 3".
std::string describe(const CallHeader& header);

// "rank 1 called broadcast #7 of 1000 float32 from root 0, rank 0 called all_reduce #7 of 1000
// float32 sum; ...". If these texts are equal, details that differ are added.
std::string describe_mismatch(int one, const CallHeader& ones, int other, const CallHeader& others);

}  // namespace kolo::inline v0
