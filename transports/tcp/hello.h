// Hello: the first 64 bytes on every connection, in both directions. The connecting rank sends it
// at once and continues with data. The accepting rank sends it before its own first data.
//
//     offset  0  u32      kMagic
//             4  u32      version
//             8  16 bytes the job's token, from the store: unknown to other programs
//            24  i32      from: the sending rank
//            28  i32      to: the receiving rank, as the sender expects
//            32  u32      flags: 1 = bytes of another connection precede those of this one
//            36  u32      lane: 0 for the first connection of a pair
//            40  24 bytes zero: for a later proof of a job's secret
//
// Numbers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::tcp {

inline constexpr std::size_t kHelloBytes = 64;
inline constexpr std::size_t kTokenBytes = 16;

using Token = std::array<std::byte, kTokenBytes>;

struct Hello {
  Token token{};
  std::int32_t from = 0;
  std::int32_t to = 0;
  bool follows_another = false;  // see connection_channel.h
  std::uint32_t lane = 0;
};

std::array<std::byte, kHelloBytes> encode(const Hello& hello);

// Returns nothing if these bytes are not a hello of this version.
std::optional<Hello> decode(std::span<const std::byte, kHelloBytes> bytes);

// False as soon as the first bytes, however few, cannot become a hello.
bool may_become_hello(std::span<const std::byte> bytes);

// Reader for a hello that may arrive in several parts.
class HelloReader {
 public:
  enum class State { kWaiting, kComplete, kBroken };
  State read(const posix::Descriptor& socket);

  std::optional<Hello> hello() const { return decode(bytes_); }
  bool is_other() const { return !may_become_hello(std::span(bytes_).first(filled_)); }
  int error() const { return error_; }  // errno of a broken connection; otherwise 0

 private:
  std::array<std::byte, kHelloBytes> bytes_{};
  std::size_t filled_ = 0;
  int error_ = 0;
};

Token random_token();
std::string to_text(const Token& token);  // 32 hexadecimal digits
std::optional<Token> token_from_text(const std::string& text);

}  // namespace kolo::inline v0::tcp
