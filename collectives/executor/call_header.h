// The words with which an operation opens a channel: who calls what.
//
// The first segment of an operation on every channel direction that its schedule uses is
// kHeaderSegmentBytes long, whatever the operation: a CallHeader, and room into which the first
// payload segment goes if it fits. So ranks that call different things understand one another's
// first segment at least, small operations travel in one cache line, and mismatch is an error
// instead of a hang, without a round trip.
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

namespace kolo {

struct CallHeader {
  std::uint16_t magic = 0x4b31;  // "K1": the version of this format
  Collective collective = Collective::kBarrier;
  std::uint8_t algorithm = 0;  // its row in algorithms.h
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::uint16_t root = 0;
  std::uint32_t sequence = 0;        // operations of this communicator before it
  std::uint32_t segment_units = 0;   // segment bytes / kSegmentAlignment, kOnStream, kCaptured
  std::uint64_t count_and_plan = 0;  // elements << 16 | hash of the server plan

  friend bool operator==(const CallHeader& one, const CallHeader& other) {
    return one.is(reinterpret_cast<const std::byte*>(&other));
  }

  // Whether `bytes` are just this header: three words, without a call.
  bool is(const std::byte* bytes) const {
    return ((word(this, 0) ^ word(bytes, 0)) | (word(this, 1) ^ word(bytes, 1)) |
            (word(this, 2) ^ word(bytes, 2))) == 0;
  }

  // Whether the two differ in their sequences at most.
  bool is_like(const CallHeader& other) const {
    return ((word(this, 0) ^ word(&other, 0)) | ((word(this, 1) ^ word(&other, 1)) & ~kSequence) |
            (word(this, 2) ^ word(&other, 2))) == 0;
  }

  // This one with another sequence. The whole word is written: a processor that is asked for a word
  // of which a part has just been written waits until that has reached the cache.
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

  // Set where the data go over the streams' part of a channel, and only the opening over the
  // host's: who expects them there must not take what is there for them.
  static constexpr std::uint32_t kOnStream = std::uint32_t{1} << 31;
  bool is_on_stream() const { return !is_user() && (segment_units & kOnStream) != 0; }

  // Beside it, where the call is captured into a graph.
  static constexpr std::uint32_t kCaptured = std::uint32_t{1} << 30;
  bool is_captured() const { return !is_user() && (segment_units & kCaptured) != 0; }

  // Of a user function, whose elements no type describes: `type` says nothing, segment_units has
  // the element's bytes in its upper half (a segment is 4 MiB at most, then), count_and_plan the
  // function's tag where the hash is, and `root` the hash, as no call with a root has one.
  bool is_user() const { return op == ReduceOp::kUser; }
  std::uint16_t tag() const { return static_cast<std::uint16_t>(count_and_plan & 0xffff); }
  std::uint32_t units() const {
    return segment_units & (is_user() ? 0xffffU : ~(kOnStream | kCaptured));
  }
  std::size_t bytes_of_element() const {
    return is_user() ? segment_units >> 16 : element_bytes(type);
  }
  // Whole elements.
  std::size_t segment_bytes() const {
    const std::size_t bytes = units() * kSegmentAlignment;
    // A peer's header may say anything: elements of no bytes, too.
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
    56;  // what shm carries in one cache line, its own word beside it
inline constexpr std::size_t kInlinePayloadBytes = kHeaderSegmentBytes - sizeof(CallHeader);
inline constexpr std::uint64_t kLongestCount = (std::uint64_t{1} << 48) - 1;

// "all_reduce #182 of 1000 float32 sum", "broadcast #7 of 5 int32 from root 0", "scan #1 of 7
// elements of 12 bytes by user function 3".
std::string describe(const CallHeader& header);

// "rank 1 called broadcast #7 of 1000 float32 from root 0, rank 0 called all_reduce #7 of 1000
// float32 sum; ...", with the detail that tells them apart where that is not among these words.
std::string describe_mismatch(int one, const CallHeader& ones, int other, const CallHeader& others);

}  // namespace kolo
