#include "train/report/machine_info.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

namespace kolo::train {
namespace {

// kVersion, kCommit, kCompiler: written by version.cmake at every build.
#include "train_version.inc"

// The value behind the first "name : value" or "NAME=value" of a file.
std::string find_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(name)) continue;
    const std::size_t mark = line.find_first_of(":=", name.size());
    if (mark == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t\"", mark + 1);
    const std::size_t end = line.find_last_not_of(" \t\"");
    if (begin != std::string::npos) return line.substr(begin, end - begin + 1);
  }
  return "unknown";
}

std::string memory_text() {
  const std::string kib = find_in("/proc/meminfo", "MemTotal");
  return kib == "unknown" ? kib : fmt::format("{:.1f} GiB", std::atof(kib.c_str()) / (1 << 20));
}

std::string kernel_text() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

std::map<std::string, std::string> machine_info() {
  return {{"processor", find_in("/proc/cpuinfo", "model name")},
          {"cores", std::to_string(std::thread::hardware_concurrency())},
          {"memory", memory_text()},
          {"system", find_in("/etc/os-release", "PRETTY_NAME")},
          {"kernel", kernel_text()},
          {"compiler", kCompiler},
          {"kolo", kVersion},
          {"commit", kCommit},
          {"time", time_text()}};
}

}  // namespace kolo::train
