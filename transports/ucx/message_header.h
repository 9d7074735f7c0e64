// Header of every message, and comparison of sequence numbers that wrap around.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

namespace kolo::inline v0::ucx {

// Each kind of message has its own active message id.
enum class Kind : unsigned {
  kSegment,
  kCredit,
  kHello,   // the first message: makes UCX set up the connection
  kReady,   // the hello has left; later messages need no help of the receiver
  kGoodbye  // the last message; carries the number of segments sent
};
inline constexpr unsigned kKinds = 5;

struct Header {
  std::uint32_t token = 0;     // the sender's published token; a restarted rank has another one
  std::uint32_t from = 0;      // the sender's rank
  std::uint32_t number = 0;    // of the segment; in a goodbye: how many there were
  std::uint32_t released = 0;  // segments of the other direction that the sender has released
};

// UCX does not connect machines of different byte orders.
inline constexpr std::size_t kHeaderBytes = 16;
static_assert(sizeof(Header) == kHeaderBytes);

// A short segment that is followed at once by another one (kMore) travels behind the header of that
// one, as "the segment before".
inline constexpr std::size_t kMostBefore = 64;

struct ReadHeader {
  Header header;
  std::span<const std::byte> before;  // the segment before; may be empty
};

inline std::optional<ReadHeader> read_header(const void* bytes, std::size_t length) {
  if (length < kHeaderBytes || length > kHeaderBytes + kMostBefore) return std::nullopt;
  ReadHeader read;
  std::memcpy(&read.header, bytes, kHeaderBytes);
  read.before = {static_cast<const std::byte*>(bytes) + kHeaderBytes, length - kHeaderBytes};
  return read;
}

// How far `number` is past `base`, both modulo 2^32. A huge value if it is before `base`.
constexpr std::uint32_t distance(std::uint32_t base, std::uint32_t number) { return number - base; }

}  // namespace kolo::inline v0::ucx
