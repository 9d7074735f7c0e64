#include "transports/posix/host/cores.h"

#include <sched.h>
#include <algorithm>
#include <sstream>
#include <string>

#include "transports/posix/host/cgroup.h"

namespace kolo::inline v0::posix {

namespace {

std::optional<double> tighter(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// Quota of one cgroup v1 group: two files, quota -1 for none.
std::optional<double> quota_v1(const std::string& folder) {
  const auto quota = first_line(folder + "/cpu.cfs_quota_us");
  const auto period = first_line(folder + "/cpu.cfs_period_us");
  if (!quota || !period || quota->empty()) return std::nullopt;
  return parse_cpu_max((quota->front() == '-' ? "max" : *quota) + " " + *period);
}

}  // namespace

std::vector<int> affinity_cores(pid_t process) {
  // Grows the mask until it is as long as the kernel's: there are machines with more than 1024
  // cores.
  for (int cores = 1024; cores <= 1 << 20; cores *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cores));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cores));
    std::vector<int> found;
    const bool fits = ::sched_getaffinity(process, bytes, set) == 0;
    for (int core = 0; fits && core < cores; ++core) {
      if (CPU_ISSET_S(static_cast<std::size_t>(core), bytes, set)) found.push_back(core);
    }
    CPU_FREE(set);
    if (fits) return found;
  }
  return {0};
}

std::optional<double> parse_cpu_max(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string quota;
  double period = 0;
  if (!(words >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  std::istringstream number(quota);
  double value = 0;
  if (!(number >> value) || value <= 0) return std::nullopt;
  return value / period;
}

std::optional<double> cgroup_quota_cores() {
  std::optional<double> quota;
  for (const CgroupFolder& folder : cgroup_folders("cpu")) {
    if (!folder.is_v2) {
      quota = tighter(quota, quota_v1(folder.path));
    } else if (const auto text = first_line(folder.path + "/cpu.max")) {
      quota = tighter(quota, parse_cpu_max(*text));
    }
  }
  return quota;
}

}  // namespace kolo::inline v0::posix
