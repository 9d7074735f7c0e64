// Wire protocol between a TCP store's server and its clients.
//
// A message is a header of 32 bytes, a key and a value. The header, little-endian:
//
//     offset  0  u32  kMagic: identifies other protocols by their first four bytes
//             4  u32  kind
//             8  u64  id: a reply carries its request's id; 0 for unrequested server messages
//            16  i64  number: its meaning depends on the kind
//            24  u32  length of the key, at most kLongestKey
//            28  u32  length of the value, at most kLongestValue
//
// The first message of a client is kHello; otherwise the server closes the connection. Replies come
// in any order: the reply to kGet waits for the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kolo::inline v0::store_wire {

inline constexpr std::uint32_t kMagic = 0x4f4c4f4b;  // "KOLO"
inline constexpr std::int64_t kVersion = 2;
inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::size_t kLongestKey = 4096;
inline constexpr std::size_t kLongestValue = 1 << 20;

enum class Kind : std::uint32_t {
  kHello = 1,  // number: version; key: the job's name; value: "host, pid". Answered by kValue,
               // number: the version; value: the job's id
  kSet,        // key, value. Answered by kValue
  kTryGet,     // key. Answered by kValue or kNothing
  kGet,        // key. Answered by kValue as soon as the key is set
  kForget,     // id: of a kGet to cancel
  kAdd,        // key, number: to add. Answered by kValue, number: the sum
  kJoin,       // number: the rank; key: its communicator, or empty; value: the communicator's size.
               // Answered by kValue, or kNothing with the reason of the refusal
  kLeave,      //
  kRetire,     // key: a prefix of keys; number: how many such messages remove the keys
  kFail,       // value: the text. Answered by kValue: the text that won
  kValue,      // reply
  kNothing,    // reply
  kFailed,     // from the server, unrequested. key: the job's id; value: its failure; number: 1 if
               // all ranks had met. Comes before the reply to a hello, or in place of it
  kGoodbye,    // from the server, unrequested: its regular end
  kLast = kGoodbye
};

struct Message {
  Kind kind = Kind::kNothing;
  std::uint64_t id = 0;
  std::int64_t number = 0;
  std::string key;
  std::string value;
};

// Throws std::invalid_argument for a key or a value that is too long.
std::string encode(const Message& message);

// Removes the first message from the front of `bytes`; returns nothing while it is incomplete.
// Error kProtocol as soon as the bytes cannot become a message.
std::optional<Message> take(std::string& bytes);

}  // namespace kolo::inline v0::store_wire
