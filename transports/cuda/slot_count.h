// Number of slots between two ranks, per direction.
//
// Ranks that share one device run in turn, in time slices. A rank can send as many segments per
// slice as there are slots, and each change of ranks takes some 100 us. So such ranks get as many
// slots as memory allows. Ranks with devices of their own run at the same time and need few.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "transports/transport.h"

namespace kolo::inline v0::cuda {

inline constexpr std::size_t kMostSlots = 32;
// Bounds of more than kMinimumCredit slots: of one direction of a pair, and of all ranks of a
// device together. Each communicator has slots of its own.
inline constexpr std::size_t kMostBytesPerDirection = std::size_t{32} << 20;
inline constexpr std::size_t kMostBytesPerDevice = std::size_t{256} << 20;

// `devices`: of all ranks, as describe_peer_access() formats them; empty: unknown. A pair has two
// sets of slots per direction, one for captured work. The same on all ranks.
inline int slot_count(std::span<const std::string> devices, std::size_t segment_bytes) {
  const auto uuid = [](const std::string& device) { return device.substr(0, device.find(' ')); };
  const bool is_one_device = std::ranges::all_of(devices, [&](const std::string& device) {
    return !device.empty() && uuid(device) == uuid(devices.front());
  });
  const std::size_t ranks = devices.size();
  if (ranks < 2 || !is_one_device) return kMinimumCredit;
  const std::size_t bytes =
      std::min(kMostBytesPerDirection, kMostBytesPerDevice / (2 * ranks * (ranks - 1)));
  const std::size_t slots = bytes / segment_bytes;
  return static_cast<int>(std::clamp(slots, static_cast<std::size_t>(kMinimumCredit), kMostSlots));
}

}  // namespace kolo::inline v0::cuda
