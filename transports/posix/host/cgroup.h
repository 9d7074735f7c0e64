// Memory limits of this process's cgroups (v1 and v2).
//
// The limit of any ancestor group applies too, so all levels are examined.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

// Paths of the cgroup files; tests use others.
struct CgroupPlaces {
  std::string root = "/sys/fs/cgroup";
  std::string membership = "/proc/self/cgroup";
};

struct CgroupFolder {
  std::string path;  // of one level; may be missing
  bool is_v2 = false;
};

// Folders of the hierarchies that can limit `controller` ("cpu", "memory"): in each, from the
// process's own group up to the root.
std::vector<CgroupFolder> cgroup_folders(std::string_view controller,
                                         const CgroupPlaces& places = {});

// First line of a file; nothing if it does not exist.
std::optional<std::string> first_line(const std::string& path);

struct MemoryRoom {
  std::size_t limit = 0;  // for all processes of the group together
  std::size_t free = 0;   // bytes not in use; reclaimable file pages count as free
  std::string file;       // that holds the limit
};

// The level with the least free memory; nothing if no level has a limit.
std::optional<MemoryRoom> cgroup_memory(const CgroupPlaces& places = {});

// The kernel's estimate of the machine's memory available without swapping; SIZE_MAX if it gives
// none. A cgroup may allow less.
std::size_t available_memory();

// A claim to memory that was found free. Until it is destroyed, claims of other threads and
// processes under the same limit wait, for 10 s at most. So touch the pages first: two ranks that
// claim at the same time would otherwise both find the same memory free.
class MemoryClaim {
 public:
  MemoryClaim() = default;
  explicit MemoryClaim(Descriptor lock) : lock_(std::move(lock)) {}

 private:
  Descriptor lock_;  // of the file that holds the limit; none for a small claim
};

// Error kSystem if `bytes` more cannot be had. Without this check the kernel would kill the process
// once it touches the pages. The message gives the request, the rest and the limit; `of_what` names
// the purpose ("of a buffer"). Other programs may use the memory meanwhile.
[[nodiscard]] MemoryClaim claim_memory(std::size_t bytes, std::string_view of_what,
                                       const CgroupPlaces& places = {});

}  // namespace kolo::inline v0::posix
