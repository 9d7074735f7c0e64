// What a message says of itself: the 64 bits that tagged messages are matched by.
//
//     63 60 59        40 39        24 23             0
//     kind  token        rank         count
//
// The token is the receiver's, a random number that only readers of the store know: what somebody
// else sends matches nothing. A count is the last bits of one that only grows; who knows about
// where it is, knows the whole. So data carry credit with them, at no cost.
#pragma once

#include <cstdint>

namespace kolo::ofi {

enum class MessageKind : std::uint8_t {
  kData = 0,    // a segment; count: segments of the other direction that have been taken
  kCredit = 8,  // count: as above, where no data go that way
  kEnd = 9,     // the last message of a rank that is done; count: segments that it has sent
  kHeard = 10,  // kEnd has come, and all that was sent before it
};

struct Tag {
  MessageKind kind = MessageKind::kData;
  std::uint32_t token = 0;
  std::uint32_t rank = 0;  // who sends
  std::uint32_t count = 0;
};

inline constexpr std::uint64_t kCountMask = (std::uint64_t{1} << 24) - 1;
inline constexpr std::uint32_t kTokenMask = (1u << 20) - 1;
inline constexpr int kMostRanks = 1 << 16;

// What a receive leaves open: of data the count, of all others everything but the token and that
// it is not data.
inline constexpr std::uint64_t kAnyCount = kCountMask;
inline constexpr std::uint64_t kAnyControl =
    std::uint64_t{7} << 60 | std::uint64_t{0xFFFF} << 24 | kCountMask;

constexpr std::uint64_t to_bits(const Tag& tag) {
  return static_cast<std::uint64_t>(tag.kind) << 60 | std::uint64_t{tag.token & kTokenMask} << 40 |
         std::uint64_t{tag.rank & 0xFFFF} << 24 | (tag.count & kCountMask);
}

constexpr Tag tag_from_bits(std::uint64_t bits) {
  return {static_cast<MessageKind>(bits >> 60), static_cast<std::uint32_t>(bits >> 40) & kTokenMask,
          static_cast<std::uint32_t>(bits >> 24) & 0xFFFF,
          static_cast<std::uint32_t>(bits & kCountMask)};
}

// The whole count, of which `low` are the last bits and which was `known` before. News may come
// late: what is older than what is known is `known`.
constexpr std::uint64_t whole_count(std::uint32_t low, std::uint64_t known) {
  const std::uint64_t ahead = (low - known) & kCountMask;
  return ahead > kCountMask / 2 ? known : known + ahead;
}

}  // namespace kolo::ofi
