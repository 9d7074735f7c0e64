// Control groups of both versions, read from temporary folders.
#include "transports/posix/host/cgroup.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "test/support/catch.h"
#include "test/support/temporary_folder.h"
#include "transports/error.h"

using namespace kolo;
using kolo::test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

// Contents of /sys/fs/cgroup and /proc/self/cgroup that a test sets.
class Groups {
 public:
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories(fs::path(root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::string path(const std::string& file) const { return root_ / file; }
  posix::CgroupPlaces places() const { return {root_.path().string(), path("membership")}; }

 private:
  TemporaryFolder root_;
};

}  // namespace

TEST_CASE("the memory limit of cgroup v2 is that of the level with the least free memory") {
  const Groups groups;
  groups.write("membership", "0::/job/step\n");
  CHECK_FALSE(posix::cgroup_memory(groups.places()));
  groups.write("job/step/memory.max", "max\n");
  groups.write("job/step/memory.current", "70\n");
  CHECK_FALSE(posix::cgroup_memory(groups.places()));
  groups.write("job/memory.max", "1000\n");
  groups.write("job/memory.current", "400\n");
  groups.write("memory.max", "900\n");
  groups.write("memory.current", "100\n");
  const auto room = posix::cgroup_memory(groups.places());
  REQUIRE(room);
  CHECK(room->limit == 1000);
  CHECK(room->free == 600);
  CHECK(room->file == groups.path("job/memory.max"));
}

TEST_CASE("pages of files count as free, and free memory is never negative") {
  const Groups groups;
  groups.write("membership", "0::/\n");
  groups.write("memory.max", "1000");
  groups.write("memory.current", "950");
  groups.write("memory.stat", "anon 700\nfile 250\nactive_file 100\ninactive_file 50\n");
  CHECK(posix::cgroup_memory(groups.places())->free == 200);
  groups.write("memory.current", "5000");
  CHECK(posix::cgroup_memory(groups.places())->free == 0);
  groups.write("memory.current", "20");  // read before memory.stat
  CHECK(posix::cgroup_memory(groups.places())->free == 1000);
}

TEST_CASE("the memory limit of cgroup v1 is read too, and its largest number means no limit") {
  const Groups groups;
  groups.write("membership", "5:cpu,cpuacct:/a\n4:memory:/b/c\n0::/\n");
  groups.write("memory/b/c/memory.limit_in_bytes", "9223372036854771712\n");
  groups.write("memory/b/c/memory.usage_in_bytes", "100\n");
  CHECK_FALSE(posix::cgroup_memory(groups.places()));
  groups.write("memory/b/memory.limit_in_bytes", "5000\n");
  groups.write("memory/b/memory.usage_in_bytes", "4000\n");
  groups.write("memory/b/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  const auto room = posix::cgroup_memory(groups.places());
  REQUIRE(room);
  CHECK(room->limit == 5000);
  CHECK(room->free == 1500);
}

TEST_CASE("groups are listed from the process's own up to the root") {
  const Groups groups;
  groups.write("membership", "5:cpu,cpuacct:/a/b\nnonsense\n0::/\n");
  std::vector<std::string> paths;
  for (const auto& folder : posix::cgroup_folders("cpu", groups.places()))
    paths.push_back(folder.path);
  CHECK(paths == std::vector<std::string>{groups.path("cpu/a/b"), groups.path("cpu/a"),
                                          groups.path("cpu"), groups.places().root});
}

TEST_CASE("the error for missing memory gives the size and the purpose") {
  CHECK_NOTHROW(posix::require_memory(4096, "of nothing"));
  CHECK_THROWS_WITH(
      posix::require_memory(std::size_t{1} << 45, "of a test"),
      ContainsSubstring("there is no memory for 35184372088832 bytes of a test: this ") &&
          ContainsSubstring(" left; ask for less"));
}
