// What messages are matched by, their 64-bit tags, and what they say of themselves in the 64 bits
// of immediate data that come along.
//
//     tag    63       62     48 47     16 15    0        word   63 60 59   40 39     0
//            control  -         token     rank                  kind  rank    count
//
// A tag is matched whole: with some bits left open libfabric 1.17's provider shm takes the wrong
// message. The token is the receiver's, a random number that only readers of the store know: what
// somebody else sends matches nothing. A count is the last bits of one that only grows: who knows
// about where it is, knows the whole. So data carry credit with them, at no cost.
#pragma once

#include <cstdint>

namespace kolo::ofi {

inline constexpr int kMostRanks = 1 << 16;

// Of a segment that `rank` sends to the owner of `token`.
constexpr std::uint64_t data_tag(std::uint32_t token, int rank) {
  return std::uint64_t{token} << 16 | static_cast<std::uint16_t>(rank);
}

// Of all other messages, whoever sends them.
constexpr std::uint64_t control_tag(std::uint32_t token) {
  return std::uint64_t{1} << 63 | std::uint64_t{token} << 16;
}

enum class MessageKind : std::uint8_t {
  kData,    // a segment; count: segments of the other direction that have been taken
  kCredit,  // count: as above, where no data go that way
  kEnd,     // the last message of a rank that is done; count: segments that it has sent
  kHeard,   // kEnd has come, and all that was sent before it
  kHello,   // says nothing: the first message, where that makes a connection
};

struct ImmediateData {
  MessageKind kind = MessageKind::kData;
  std::uint32_t rank = 0;  // who sends
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

// The whole count, of which `low` are the last bits and which was `known` before. News may come
// late: what is older than what is known is `known`.
constexpr std::uint64_t whole_count(std::uint64_t low, std::uint64_t known) {
  const std::uint64_t ahead = (low - known) & kCountMask;
  return ahead > kCountMask / 2 ? known : known + ahead;
}

}  // namespace kolo::ofi
