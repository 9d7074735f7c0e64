// Cores that this process may use: affinity mask and cgroup quota.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>
#include <vector>

namespace kolo::inline v0::posix {

// Numbers of the cores in the affinity mask, ascending; of this process, or of another one.
std::vector<int> affinity_cores(pid_t process = 0);

// CPU quota of this process's cgroups (v1 and v2, the tightest of all levels), in cores; nothing
// without a limit.
std::optional<double> cgroup_quota_cores();

// Parses cgroup v2's cpu.max ("max 100000", "150000 100000").
std::optional<double> parse_cpu_max(std::string_view text);

}  // namespace kolo::inline v0::posix
