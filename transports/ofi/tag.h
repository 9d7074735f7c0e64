// Message format: the 64-bit tag for matching and the 64 bits of immediate data.
//
//     tag    63       62     48 47     16 15    0        word   63 60 59   40 39     0
//            control  -         token     rank                  kind  rank    count
//
// All bits of a tag are matched: with ignored bits, libfabric 1.17's provider shm matches the wrong
// message. The token is a random number of the receiver that only readers of the store know. So
// messages from other programs match nothing. A count is the low 40 bits of a number that only
// grows: a receiver that knows the approximate value restores the whole number (whole_count). So
// data messages carry credit at no cost.
#pragma once

#include <cstdint>

namespace kolo::inline v0::ofi {

inline constexpr int kMostRanks = 1 << 16;

// Tag of a segment from `rank` to the owner of `token`.
constexpr std::uint64_t data_tag(std::uint32_t token, int rank) {
  return std::uint64_t{token} << 16 | static_cast<std::uint16_t>(rank);
}

// Tag of all other messages, from any rank.
constexpr std::uint64_t control_tag(std::uint32_t token) {
  return std::uint64_t{1} << 63 | std::uint64_t{token} << 16;
}

enum class MessageKind : std::uint8_t {
  kData,    // a segment; count: segments taken of the other direction
  kCredit,  // count: as above, sent if no data go that way
  kEnd,     // the last message of a rank; count: segments that it has sent
  kHeard,   // kEnd and all data before it have arrived
  kHello,   // empty first message, which makes the connection
};

struct ImmediateData {
  MessageKind kind = MessageKind::kData;
  std::uint32_t rank = 0;  // the sender
  std::uint64_t count = 0;
};

inline constexpr std::uint64_t kCountMask = (std::uint64_t{1} << 40) - 1;

constexpr std::uint64_t to_bits(const ImmediateData& word) {
  return static_cast<std::uint64_t>(word.kind) << 60 | std::uint64_t{word.rank & 0xFFFFF} << 40 |
         (word.count & kCountMask);
}

constexpr ImmediateData immediate_from_bits(std::uint64_t bits) {
  return {static_cast<MessageKind>(bits >> 60), static_cast<std::uint32_t>(bits >> 40) & 0xFFFFF,
          bits & kCountMask};
}

// Restores a count from its bits `low` and the value `known` before. Messages may arrive late: a
// value older than `known` yields `known`.
constexpr std::uint64_t whole_count(std::uint64_t low, std::uint64_t known) {
  const std::uint64_t ahead = (low - known) & kCountMask;
  return ahead > kCountMask / 2 ? known : known + ahead;
}

}  // namespace kolo::inline v0::ofi
