// What every message begins with, and how numbers that wrap around are compared.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

namespace kolo::ucx {

// Messages of each kind have an id of their own.
enum class Kind : unsigned {
  kSegment,
  kCredit,
  kHello,   // first of all: has UCX make what a connection needs
  kReady,   // the hello has gone, and what follows needs no help of the receiver's
  kGoodbye  // last of all: there were so many segments
};
inline constexpr unsigned kKinds = 5;

struct Header {
  std::uint32_t token = 0;   // as the sender has published it: a rank that comes again has another
  std::uint32_t from = 0;    // the sender's rank
  std::uint32_t number = 0;  // of the segment; of a goodbye: how many there were
  std::uint32_t released = 0;  // segments of the receiver's that the sender has released so far
};

// UCX joins no machines of different byte orders.
inline constexpr std::size_t kHeaderBytes = 16;
static_assert(sizeof(Header) == kHeaderBytes);

// A short segment that was followed at once by another (kMore) travels behind that one's header: it
// is the segment before.
inline constexpr std::size_t kMostBefore = 64;

struct ReadHeader {
  Header header;
  std::span<const std::byte> before;  // the segment before, or nothing
};

inline std::optional<ReadHeader> read_header(const void* bytes, std::size_t length) {
  if (length < kHeaderBytes || length > kHeaderBytes + kMostBefore) return std::nullopt;
  ReadHeader read;
  std::memcpy(&read.header, bytes, kHeaderBytes);
  read.before = {static_cast<const std::byte*>(bytes) + kHeaderBytes, length - kHeaderBytes};
  return read;
}

// How far `number` lies past `base`, both modulo 2^32: of one that lies before it, a huge one.
constexpr std::uint32_t distance(std::uint32_t base, std::uint32_t number) { return number - base; }

}  // namespace kolo::ucx
