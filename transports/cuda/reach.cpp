#include "transports/cuda/reach.h"

#include <algorithm>
#include <string_view>

namespace kolo::cuda {

std::string describe_reach(Driver& driver, const Device& device) {
  std::string line = device.uuid();
  for (int other = 0; other < count_devices(driver); ++other) {
    if (other != device.number() && device.can_reach(other)) line += " " + uuid_of(driver, other);
  }
  return line;
}

bool all_reach(std::span<const std::string> lines) {
  const auto reaches = [](std::string_view line, std::string_view uuid) {
    return (" " + std::string(line) + " ").find(" " + std::string(uuid) + " ") != std::string::npos;
  };
  return !lines.empty() && std::ranges::all_of(lines, [&](const std::string& line) {
    return !line.empty() && std::ranges::all_of(lines, [&](const std::string& other) {
      return reaches(line, other.substr(0, other.find(' ')));
    });
  });
}

}  // namespace kolo::cuda
