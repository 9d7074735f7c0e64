// Last-level caches of this machine, as reported by the kernel (sysfs).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::inline v0::posix {

struct Cache {
  std::size_t bytes = 0;
  std::vector<int> cores;  // that share this cache, ascending
};

// The last-level caches of `cores`, each once; empty if the system does not report them. `folder`
// is a parameter for tests.
std::vector<Cache> last_level_caches(const std::vector<int>& cores,
                                     const std::string& folder = "/sys/devices/system/cpu");

// Cache bytes per rank if `ranks` ranks are spread evenly over `cores`: the largest share among the
// caches; 0 if `caches` is empty.
std::size_t share_of_caches(const std::vector<Cache>& caches, const std::vector<int>& cores,
                            int ranks);

// "0-3,8" to {0, 1, 2, 3, 8}; empty if the text is not such a list.
std::vector<int> parse_cores(std::string_view text);

}  // namespace kolo::inline v0::posix
