// The last-level caches of this machine, as the kernel tells of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::posix {

struct Cache {
  std::size_t bytes = 0;
  std::vector<int> cores;  // that share it, ascending
};

// Those of `cores`, each once; empty where the system does not say. `folder`: where it says.
std::vector<Cache> last_level_caches(const std::vector<int>& cores,
                                     const std::string& folder = "/sys/devices/system/cpu");

// What there is of them for each of `ranks` ranks that are spread evenly over `cores`: the most
// that any of the caches has; 0 where `caches` is empty.
std::size_t share_of_caches(const std::vector<Cache>& caches, const std::vector<int>& cores,
                            int ranks);

// "0-3,8" to {0, 1, 2, 3, 8}; empty where it is no such list.
std::vector<int> parse_cores(std::string_view text);

}  // namespace kolo::posix
