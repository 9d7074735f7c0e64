// Chunks on a lane, encoded for a fake peer.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "test/transports/tcp/fake_peer.h"
#include "transports/tcp/lanes_channel.h"

namespace kolo::test {

inline std::string chunk(std::uint32_t segment, std::size_t offset,
                         std::span<const std::byte> bytes) {
  const tcp::ChunkHeader header{tcp::kChunkMagic, segment, static_cast<std::uint32_t>(offset),
                                static_cast<std::uint32_t>(bytes.size())};
  return text_of(std::as_bytes(std::span(&header, 1))) + text_of(bytes);
}

// The goodbye on a lane, after `segments` segments were sent.
inline std::string goodbye(std::uint32_t segments) { return chunk(segments, 0, {}); }

}  // namespace kolo::test
