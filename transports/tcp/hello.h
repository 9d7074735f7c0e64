// The first 64 bytes on every connection, in both directions.
//
//     offset  0  u32      kMagic
//             4  u32      version
//             8  16 bytes the job's token, from the store: strangers do not know it
//            24  i32      from: the rank that says hello
//            28  i32      to: the rank that it believes to talk to
//            32  32 bytes zero: room for a proof of the job's secret
//
// Numbers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kolo::tcp {

inline constexpr std::size_t kHelloBytes = 64;
inline constexpr std::size_t kTokenBytes = 16;

using Token = std::array<std::byte, kTokenBytes>;

struct Hello {
  Token token{};
  std::int32_t from = 0;
  std::int32_t to = 0;
};

std::array<std::byte, kHelloBytes> encode(const Hello& hello);

// Nothing where these bytes are no hello of this version.
std::optional<Hello> decode(std::span<const std::byte, kHelloBytes> bytes);

// False as soon as the first bytes, however few, cannot become a hello.
bool may_become_hello(std::span<const std::byte> bytes);

Token random_token();
std::string to_text(const Token& token);  // 32 hexadecimal digits
std::optional<Token> token_from_text(const std::string& text);

}  // namespace kolo::tcp
