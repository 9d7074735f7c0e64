#include "transports/posix/host/cgroup.h"

#include <fcntl.h>
#include <sys/file.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <thread>

#include "transports/error.h"

namespace kolo::inline v0::posix {

namespace {

// cgroup v1 reports "no limit" as the largest number of pages; no machine has that much.
constexpr std::size_t kNoLimit = std::size_t{1} << 62;

// Smaller requests are not checked: reading the kernel's files takes about 50 us.
constexpr std::size_t kWorthAsking = std::size_t{1} << 20;

constexpr std::chrono::seconds kLongestClaim{10};
constexpr std::chrono::milliseconds kBetweenTries{1};

std::string parent_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::optional<std::size_t> number_in(const std::string& path) {
  const auto line = first_line(path);
  std::size_t value = 0;
  if (!line) return std::nullopt;
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;  // "max" means no limit
}

// File pages, which the kernel reclaims before it refuses memory. Shared memory is not included.
std::size_t reclaimable(const CgroupFolder& folder) {
  std::ifstream file(folder.path + "/memory.stat");
  std::size_t sum = 0;
  std::string name;
  std::size_t bytes = 0;
  const std::string_view prefix = folder.is_v2 ? "" : "total_";
  while (file >> name >> bytes) {
    for (const std::string_view kind : {"active_file", "inactive_file"}) {
      if (name == std::string(prefix).append(kind)) sum += bytes;
    }
  }
  return sum;
}

std::optional<MemoryRoom> room_in(const CgroupFolder& folder) {
  const std::string file = folder.path + (folder.is_v2 ? "/memory.max" : "/memory.limit_in_bytes");
  const auto limit = number_in(file);
  if (!limit || *limit >= kNoLimit) return std::nullopt;
  const auto used =
      number_in(folder.path + (folder.is_v2 ? "/memory.current" : "/memory.usage_in_bytes"))
          .value_or(0);
  const std::size_t kept = used - std::min(used, reclaimable(folder));
  return MemoryRoom{*limit, *limit - std::min(*limit, kept), file};
}

// The lock of a file, for one thread of one process at a time. It ends with its descriptor. None if
// the file cannot be locked, or if its holder keeps it too long, as a stopped process does.
Descriptor lock_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto end = std::chrono::steady_clock::now() + kLongestClaim;
  while (file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= end) return Descriptor();
    std::this_thread::sleep_for(kBetweenTries);
  }
  return file;
}

}  // namespace

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line)) return std::nullopt;
  return line;
}

std::vector<CgroupFolder> cgroup_folders(std::string_view controller, const CgroupPlaces& places) {
  std::ifstream file(places.membership);
  std::vector<CgroupFolder> folders;
  const std::string wanted = std::string(",").append(controller).append(",");
  std::string line;  // "0::/group" for v2, "4:cpu,cpuacct:/group" for v1
  while (std::getline(file, line)) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = std::string(",").append(line, first + 1, second - first - 1) + ",";
    const bool is_v2 = controllers == ",,";
    if (!is_v2 && controllers.find(wanted) == std::string::npos) continue;
    const std::string root = is_v2 ? places.root : places.root + "/" + std::string(controller);
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    while (true) {
      folders.push_back({root + group, is_v2});
      if (group.empty()) break;
      group = parent_of(group);
    }
  }
  return folders;
}

std::optional<MemoryRoom> cgroup_memory(const CgroupPlaces& places) {
  std::optional<MemoryRoom> least;
  for (const CgroupFolder& folder : cgroup_folders("memory", places)) {
    const auto room = room_in(folder);
    if (room && (!least || room->free < least->free)) least = room;
  }
  return least;
}

std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::size_t kibibytes = 0;
    if (word == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  }
  return SIZE_MAX;
}

MemoryClaim claim_memory(std::size_t bytes, std::string_view of_what, const CgroupPlaces& places) {
  if (bytes < kWorthAsking) return {};
  const auto refuse = [&](const std::string& who_has_how_much) {
    throw Error(ErrorCode::kSystem, kNoPeer,
                "there is no memory for " + std::to_string(bytes) + " bytes " +
                    std::string(of_what) + ": " + who_has_how_much);
  };
  const auto limiting = cgroup_memory(places);
  MemoryClaim claim(lock_file(limiting ? limiting->file : "/proc/meminfo"));
  const auto room = cgroup_memory(places);
  if (room && bytes > room->free) {
    refuse("this process's cgroup has " + std::to_string(room->free) + " of " +
           std::to_string(room->limit) + " left; ask for less, or raise " + room->file);
  }
  const std::size_t available = available_memory();
  if (bytes > available)
    refuse("this machine has " + std::to_string(available) + " left; ask for less");
  return claim;
}

}  // namespace kolo::inline v0::posix
