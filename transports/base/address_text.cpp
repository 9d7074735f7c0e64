#include "transports/base/address_text.h"

#include <fmt/format.h>
#include <cstdint>
#include <utility>

namespace kolo::inline v0 {

namespace {

std::optional<int> digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return std::nullopt;
}

// FNV-1a.
std::uint64_t sum_of(const std::string& text) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char byte : text) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return sum;
}

}  // namespace

std::istringstream stream_of(const std::string& text) {
  std::istringstream stream(text);
  stream.exceptions(std::ios::badbit);
  return stream;
}

std::string to_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::optional<std::string> from_hex(const std::string& text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const auto high = digit(text[i]);
    const auto low = digit(text[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes += static_cast<char>(*high * 16 + *low);
  }
  return bytes;
}

std::string with_checksum(std::string text) {
  const std::uint64_t sum = sum_of(text);
  return std::move(text) + fmt::format("{:016x}\n", sum);
}

}  // namespace kolo::inline v0
