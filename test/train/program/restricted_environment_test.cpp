// kolo-train without root rights, and without space in /dev/shm.
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "test/support/catch.h"
#include "test/train/program/program.h"
#include "test/train/program/small_run.h"

namespace {

namespace fs = std::filesystem;
using namespace kolo::test;

constexpr uid_t kNobody = 65534;

void check_runs(const Start& start, const Folder& folder) {
  Program program(start);
  const int code = program.wait();
  INFO(program.output());
  CHECK(code == 0);
  CHECK(fs::file_size(folder.path / "out/report.json") > 1000);
  check_nothing_is_left(program, folder);
}

bool become_nobody() {
  return setgroups(0, nullptr) == 0 && setgid(kNobody) == 0 && setuid(kNobody) == 0;
}

// Uses a mount namespace of this process, so that /dev/shm of other processes does not change.
bool shrink_shared_memory() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4k") == 0;
}

bool can_shrink_shared_memory() {
  const pid_t child = fork();
  if (child == 0) _exit(shrink_shared_memory() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

TEST_CASE("compare works without root") {
  const std::string transport = GENERATE("shm", "tcp");
  const Folder folder;
  Start start = folder.start(small({"compare", "--report=out", "--transport=" + transport}));
  if (geteuid() == 0) {
    // Copy the program: its folder may not be accessible without root rights.
    start.file = folder.path / "kolo-train";
    fs::copy_file(program_under_test(), start.file);
    start.variables["HOME"] = "/nonexistent";  // not that of root
    for (const fs::path& path : {folder.path, folder.temporary()}) {
      REQUIRE(chown(path.c_str(), kNobody, kNobody) == 0);
    }
    start.prepare = become_nobody;
  }
  check_runs(start, folder);
}

TEST_CASE("shared memory needs no space in /dev/shm") {
  if (!can_shrink_shared_memory()) {
    WARN("skipped: a small /dev/shm needs a mount namespace, and this user may make none");
    return;
  }
  const Folder folder;
  Start start = folder.start(small({"compare", "--report=out", "--transport=shm"}));
  start.prepare = shrink_shared_memory;
  check_runs(start, folder);
}
