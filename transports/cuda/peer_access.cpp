#include "transports/cuda/peer_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace kolo::inline v0::cuda {

std::string describe_peer_access(Driver& driver, const Device& device) {
  std::string line = device.uuid();
  for (int other = 0; other < count_devices(driver); ++other) {
    if (other != device.number() && device.can_reach(other)) line += " " + uuid_of(driver, other);
  }
  return line;
}

std::string why_no_peer_access(std::span<const std::string> lines) {
  const auto reaches = [](std::string_view line, std::string_view uuid) {
    return (" " + std::string(line) + " ").find(" " + std::string(uuid) + " ") != std::string::npos;
  };
  if (const auto without = std::ranges::find(lines, ""); without != lines.end())
    return fmt::format("rank {} has no device", without - lines.begin());
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    for (std::size_t peer = 0; peer < lines.size(); ++peer) {
      if (reaches(lines[rank], lines[peer].substr(0, lines[peer].find(' ')))) continue;
      return fmt::format(
          "the device of rank {} does not reach that of rank {}: it is not visible there "
          "(CUDA_VISIBLE_DEVICES, the container's devices), or there is no peer access",
          rank, peer);
    }
  }
  return lines.empty() ? "no rank has a device" : "";
}

}  // namespace kolo::inline v0::cuda
