// What the cgroups of this process limit (cgroup v1 and v2).
//
// A limit anywhere on the way up binds, so every level is told.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::posix {

// Where the system keeps them; others for tests.
struct CgroupPlaces {
  std::string root = "/sys/fs/cgroup";
  std::string membership = "/proc/self/cgroup";
};

struct CgroupFolder {
  std::string path;  // of one level; it need not be there
  bool is_v2 = false;
};

// Of the hierarchies that can limit `controller` ("cpu", "memory"), each from the process's own
// group up to the root.
std::vector<CgroupFolder> cgroup_folders(std::string_view controller,
                                         const CgroupPlaces& places = {});

// What stands in a file: its first line; nothing where there is no such file.
std::optional<std::string> first_line(const std::string& path);

struct MemoryRoom {
  std::size_t limit = 0;  // bytes that all processes of the group may have together
  std::size_t free = 0;   // of them, that are not in use; pages of files that can go count as free
  std::string file;       // that says so
};

// Of the level that has the least left; nothing where no level has a limit.
std::optional<MemoryRoom> cgroup_memory(const CgroupPlaces& places = {});

// Error kSystem where `bytes` more are not to be had: who goes over a limit of pages is not
// refused, but killed. It says how much was asked for, is left and is the limit, and of what the
// bytes are: "of a buffer". Other processes may take what is left meanwhile.
void require_memory(std::size_t bytes, std::string_view of_what);

}  // namespace kolo::posix
