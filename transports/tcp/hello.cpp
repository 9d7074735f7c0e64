#include "transports/tcp/hello.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <random>

#include "transports/posix/socket.h"

namespace kolo::inline v0::tcp {

namespace {

static_assert(std::endian::native == std::endian::little, "hello copies numbers as they lie");

constexpr std::uint32_t kMagic = 0x54'4c'4f'4b;  // "KOLT"
constexpr std::uint32_t kVersion = 3;
constexpr std::uint32_t kFollowsAnother = 1;

struct Layout {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  Token token{};
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::uint32_t flags = 0;
  std::uint32_t lane = 0;
  std::array<std::byte, 24> proof{};
};
static_assert(sizeof(Layout) == kHelloBytes);

}  // namespace

std::array<std::byte, kHelloBytes> encode(const Hello& hello) {
  const Layout layout{kMagic,     kVersion, hello.token,
                      hello.from, hello.to, hello.follows_another ? kFollowsAnother : 0,
                      hello.lane, {}};
  return std::bit_cast<std::array<std::byte, kHelloBytes>>(layout);
}

std::optional<Hello> decode(std::span<const std::byte, kHelloBytes> bytes) {
  Layout layout;
  std::memcpy(&layout, bytes.data(), kHelloBytes);
  if (layout.magic != kMagic || layout.version != kVersion) return std::nullopt;
  return Hello{layout.token, layout.from, layout.to, (layout.flags & kFollowsAnother) != 0,
               layout.lane};
}

bool may_become_hello(std::span<const std::byte> bytes) {
  const Layout expected;
  const auto known = std::min(bytes.size(), offsetof(Layout, token));
  return known == 0 || std::memcmp(bytes.data(), &expected, known) == 0;
}

HelloReader::State HelloReader::read(const posix::Descriptor& socket) {
  const auto got = posix::receive_some(socket, bytes_.data() + filled_, kHelloBytes - filled_);
  filled_ += got.bytes;
  error_ = got.error;
  if (got.is_closed || is_other()) return State::kBroken;
  return filled_ == kHelloBytes ? State::kComplete : State::kWaiting;
}

Token random_token() {
  std::random_device random;
  Token token;
  for (auto& byte : token) byte = static_cast<std::byte>(random());
  return token;
}

std::string to_text(const Token& token) {
  std::string text;
  for (const auto byte : token) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

std::optional<Token> token_from_text(const std::string& text) {
  Token token;
  if (text.size() != 2 * token.size()) return std::nullopt;
  for (std::size_t i = 0; i < token.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc() || end != digits + 2) return std::nullopt;
    token[i] = static_cast<std::byte>(value);
  }
  return token;
}

}  // namespace kolo::inline v0::tcp
