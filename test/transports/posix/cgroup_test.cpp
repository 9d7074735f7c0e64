// Control groups of both versions: read from temporary folders, and a real one, as root.
#include "transports/posix/host/cgroup.h"

#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

#include "test/support/catch.h"
#include "test/support/temporary_folder.h"
#include "transports/error.h"
#include "transports/posix/shared_memory.h"

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
  CHECK_NOTHROW((void)posix::claim_memory(4096, "of nothing"));
  CHECK_THROWS_WITH(
      (void)posix::claim_memory(std::size_t{1} << 45, "of a test"),
      ContainsSubstring("there is no memory for 35184372088832 bytes of a test: this ") &&
          ContainsSubstring(" left; ask for less"));
}

TEST_CASE("of two claims at the same time, the second finds what the first has left") {
  const Groups groups;
  groups.write("membership", "0::/\n");
  groups.write("memory.max", "100000000\n");
  groups.write("memory.current", "0\n");
  const auto claim = [&] { return posix::claim_memory(60'000'000, "of a test", groups.places()); };
  std::optional<posix::MemoryClaim> first(claim());
  std::promise<void> begun;
  auto second = std::async(std::launch::async, [&] {
    begun.set_value();
    return claim();
  });
  begun.get_future().wait();
  groups.write("memory.current", "60000000\n");  // the first one touches its pages
  first.reset();
  CHECK_THROWS_WITH(second.get(), ContainsSubstring("cgroup has 40000000 of 100000000 left"));
}

namespace {

// A control group of this machine with a memory limit; is_usable() is false without the right to
// make one.
class RealGroup {
 public:
  explicit RealGroup(std::size_t limit) {
    const bool is_v1 = fs::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    path_ = fs::path(is_v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup") /
            ("kolo-test-" + std::to_string(::getpid()));
    std::error_code code;
    fs::create_directory(path_, code);
    is_usable_ = put(is_v1 ? "memory.limit_in_bytes" : "memory.max", limit);
  }
  ~RealGroup() {
    // The kernel lets a process go a moment after it was waited for.
    for (int tries = 0; tries < 100'000 && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++tries)
      ::sched_yield();
  }
  RealGroup(const RealGroup&) = delete;
  RealGroup& operator=(const RealGroup&) = delete;

  bool is_usable() const { return is_usable_; }
  bool put(const std::string& file, std::size_t number) const {
    std::ofstream stream(path_ / file);
    stream << number << std::flush;
    return static_cast<bool>(stream);
  }

 private:
  fs::path path_;
  bool is_usable_ = false;
};

constexpr int kAllocated = 0;
constexpr int kRefused = 3;
constexpr int kOutside = 4;
constexpr int kPatienceMs = 20'000;

// In a child process: allocates, and keeps the memory until all have decided.
[[noreturn]] void allocate_in(const RealGroup& group, int decided, int all_decided) {
  int code = 1;
  try {
    if (!group.put("cgroup.procs", 0)) ::_exit(kOutside);  // 0: this process
    const posix::SharedMemory memory(std::size_t{60} << 20, posix::Pages::kPresent);
    code = kAllocated;
    char byte = 0;
    (void)!::write(decided, &byte, 1);
    (void)!::read(all_decided, &byte, 1);
  } catch (const Error& error) {
    code = error.code() == ErrorCode::kSystem ? kRefused : 1;
    (void)!::write(decided, "", 1);
  }
  ::_exit(code);
}

}  // namespace

TEST_CASE("of processes that allocate at once, those that find no memory left are refused") {
  const RealGroup group(100'000'000);
  if (!group.is_usable()) {
    WARN("skipped: no right to make a control group here");
    return;
  }
  std::array<int, 2> decided{}, all_decided{};
  REQUIRE((::pipe(decided.data()) == 0 && ::pipe(all_decided.data()) == 0));
  std::array<pid_t, 3> children{};
  for (pid_t& child : children) {
    child = ::fork();
    if (child != 0) continue;
    ::close(all_decided[1]);  // which the parent closes once all have decided
    allocate_in(group, decided[1], all_decided[0]);
  }
  ::close(decided[1]);  // a killed child decides nothing
  char byte = 0;
  pollfd next{decided[0], POLLIN, 0};
  for (std::size_t child = 0; child < children.size(); ++child) {
    if (::poll(&next, 1, kPatienceMs) != 1 || ::read(decided[0], &byte, 1) != 1) break;
  }
  ::close(all_decided[1]);
  std::map<int, int> codes;
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    ++codes[WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)];
  }
  ::close(decided[0]);
  ::close(all_decided[0]);
  if (codes.contains(kOutside)) {
    WARN("skipped: no right to enter a control group here");
    return;
  }
  CHECK(codes == std::map<int, int>{{kAllocated, 1}, {kRefused, 2}});
}
