#include "transports/store/wire.h"

#include <fmt/format.h>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "transports/error.h"

namespace kolo::inline v0::store_wire {

namespace {

static_assert(std::endian::native == std::endian::little, "store_wire copies numbers as they lie");

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T read(const std::string& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

[[noreturn]] void refuse_long(const Message& message) {
  constexpr std::size_t kShown = 100;
  const std::string name = message.key.substr(0, kShown);
  throw std::invalid_argument(message.key.size() > kLongestKey
                                  ? fmt::format("store: the key '{}...' has {} bytes, {} at most",
                                                name, message.key.size(), kLongestKey)
                                  : fmt::format("store: the value of '{}' has {} bytes, {} at most",
                                                name, message.value.size(), kLongestValue));
}

[[noreturn]] void fail(const char* what) {
  throw Error(ErrorCode::kProtocol, kNoPeer,
              fmt::format("not a message of kolo's store: {}", what));
}

}  // namespace

std::string encode(const Message& message) {
  if (message.key.size() > kLongestKey || message.value.size() > kLongestValue)
    refuse_long(message);
  std::string bytes;
  bytes.reserve(kHeaderBytes + message.key.size() + message.value.size());
  append(bytes, kMagic);
  append(bytes, static_cast<std::uint32_t>(message.kind));
  append(bytes, message.id);
  append(bytes, message.number);
  append(bytes, static_cast<std::uint32_t>(message.key.size()));
  append(bytes, static_cast<std::uint32_t>(message.value.size()));
  return bytes + message.key + message.value;
}

std::optional<Message> take(std::string& bytes) {
  const std::string_view magic(reinterpret_cast<const char*>(&kMagic), sizeof kMagic);
  const auto known = std::min(bytes.size(), magic.size());
  if (bytes.compare(0, known, magic.substr(0, known)) != 0) fail("wrong magic");
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  const auto kind = read<std::uint32_t>(bytes, 4);
  const std::size_t key_bytes = read<std::uint32_t>(bytes, 24);
  const std::size_t value_bytes = read<std::uint32_t>(bytes, 28);
  if (kind < 1 || kind > static_cast<std::uint32_t>(Kind::kLast)) fail("unknown kind");
  if (key_bytes > kLongestKey || value_bytes > kLongestValue) fail("too long");
  const std::size_t total = kHeaderBytes + key_bytes + value_bytes;
  if (bytes.size() < total) return std::nullopt;
  Message message;
  message.kind = static_cast<Kind>(kind);
  message.id = read<std::uint64_t>(bytes, 8);
  message.number = read<std::int64_t>(bytes, 16);
  message.key = bytes.substr(kHeaderBytes, key_bytes);
  message.value = bytes.substr(kHeaderBytes + key_bytes, value_bytes);
  bytes.erase(0, total);
  return message;
}

}  // namespace kolo::inline v0::store_wire
