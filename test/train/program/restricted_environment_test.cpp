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

namespace {

// A start without root's rights.
Start unprivileged_start(const Folder& folder, Words words) {
  Start start = folder.start(std::move(words));
  if (geteuid() != 0) return start;
  // Copy the program: its folder may not be accessible without root rights.
  start.file = folder.path / "kolo-train";
  fs::copy_file(program_under_test(), start.file);
  start.variables["HOME"] = "/nonexistent";  // not that of root
  for (const fs::path& path : {folder.path, folder.temporary()}) {
    REQUIRE(chown(path.c_str(), kNobody, kNobody) == 0);
  }
  start.prepare = become_nobody;
  return start;
}

}  // namespace

TEST_CASE("compare works without root") {
  const std::string transport = GENERATE("shm", "tcp");
  const Folder folder;
  check_runs(
      unprivileged_start(folder, small({"compare", "--report=out", "--transport=" + transport})),
      folder);
}

TEST_CASE("a folder of data that may not be read is refused with the reason") {
  const std::string kind = GENERATE("svhn", "mnist", "cifar10", "imagefolder");
  const Folder folder;
  fs::create_directory(folder.path / "data");
  const Start start =
      unprivileged_start(folder, {"compare", "--no-report", "--dataset", kind + ":data"});
  fs::permissions(folder.path / "data", fs::perms::none);
  const ProgramResult ended = run_program(start);
  CHECK(ended.output ==
        "kolo-train: data set '" + kind + ":data': 'data' cannot be listed: Permission denied\n");
  CHECK(ended.exit_code == 2);
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
