// The cores that this process may run on.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace kolo::posix {

// Numbers of the cores in the affinity mask, ascending.
std::vector<int> affinity_cores();

// How many cores' worth of time this process's cgroup may use (cgroup v1 and v2, the tightest of
// all levels); nothing where there is no limit.
std::optional<double> cgroup_quota_cores();

// Of cgroup v2's cpu.max ("max 100000", "150000 100000").
std::optional<double> parse_cpu_max(std::string_view text);

}  // namespace kolo::posix
