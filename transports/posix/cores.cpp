#include "transports/posix/cores.h"

#include <sched.h>
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace kolo::posix {

namespace {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<double> tighter(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// The limit of one group of the old hierarchy: two files, quota -1 for none.
std::optional<double> quota_v1(const std::string& folder) {
  const auto quota = first_line(folder + "/cpu.cfs_quota_us");
  const auto period = first_line(folder + "/cpu.cfs_period_us");
  if (!quota || !period || quota->empty()) return std::nullopt;
  return parse_cpu_max((quota->front() == '-' ? "max" : *quota) + " " + *period);
}

std::string parent_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

// A limit anywhere on the way up binds; so every level is asked.
template <typename Read>
std::optional<double> tightest_upwards(const std::string& root, std::string group, Read read) {
  std::optional<double> quota;
  if (group == "/") group.clear();
  while (true) {
    quota = tighter(quota, read(root + group));
    if (group.empty()) return quota;
    group = parent_of(group);
  }
}

}  // namespace

std::vector<int> affinity_cores() {
  // Grown until the kernel's mask fits: machines of more than 1024 cores exist.
  for (int cores = 1024; cores <= 1 << 20; cores *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cores));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cores));
    std::vector<int> found;
    const bool fits = ::sched_getaffinity(0, bytes, set) == 0;
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
  std::ifstream file("/proc/self/cgroup");
  std::optional<double> quota;
  std::string line;  // "0::/group" for v2, "4:cpu,cpuacct:/group" for v1
  while (std::getline(file, line)) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = std::string(",").append(line, first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      quota =
          tighter(quota, tightest_upwards("/sys/fs/cgroup", group, [](const std::string& folder) {
                    const auto text = first_line(folder + "/cpu.max");
                    return text ? parse_cpu_max(*text) : std::nullopt;
                  }));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      quota = tighter(quota, tightest_upwards("/sys/fs/cgroup/cpu", group, quota_v1));
    }
  }
  return quota;
}

}  // namespace kolo::posix
