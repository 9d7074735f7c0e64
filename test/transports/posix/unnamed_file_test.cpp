// Files that get their name once they are complete, on file systems with and without unnamed files.
#include "transports/posix/unnamed_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "test/support/catch.h"
#include "test/support/temporary_folder.h"
#include "transports/error.h"
#include "transports/posix/whole_file.h"

namespace kolo::posix {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

std::string contents(const std::string& name) {
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const UnnamedFile& file, const std::string& text) {
  REQUIRE(file.is_open());
  REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("a file has no name while it is written") {
  const TemporaryFolder folder;
  UnnamedFile file(folder / "a");
  write(file, "whole");
  if (folder.entries() != 0) {
    WARN("skipped: the folder of temporary files has no files without a name");
    return;
  }
  CHECK(file.link(folder / "a") == 0);
  CHECK(contents(folder / "a") == "whole");
  CHECK(folder.entries() == 1);
}

TEST_CASE("an unnamed file that is never linked leaves nothing behind") {
  const TemporaryFolder folder;
  for (const bool can_be_unnamed : {true, false}) {
    write(UnnamedFile(folder / "a", can_be_unnamed), "half");
    CHECK(folder.entries() == 0);
  }
}

TEST_CASE("an unnamed file is linked to a free name, or replaces an existing file") {
  for (const bool can_be_unnamed : {true, false}) {
    INFO(can_be_unnamed);
    const TemporaryFolder folder;
    std::ofstream(folder / "a") << "older";
    {
      UnnamedFile file(folder / "a", can_be_unnamed);
      write(file, "newer");
      CHECK(file.link(folder / "a") == EEXIST);
      CHECK(contents(folder / "a") == "older");
      CHECK(file.link(folder / "b") == 0);
      CHECK(contents(folder / "b") == "newer");
      CHECK(file.replace(folder / "a") == 0);
      CHECK(contents(folder / "a") == "newer");
    }
    CHECK(folder.entries() == 2);
    CHECK(fs::status(folder / "a").permissions() == fs::perms{0644});
  }
}

TEST_CASE("an unnamed file that cannot replace another leaves everything unchanged") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a");
  for (const bool can_be_unnamed : {true, false}) {
    UnnamedFile file(folder / "a", can_be_unnamed);
    write(file, "text");
    CHECK(file.replace(folder / "a") == EISDIR);
    CHECK(file.replace(folder / "none/a") == ENOENT);
  }
  CHECK(folder.entries() == 1);
  CHECK_THROWS_AS(write_whole(folder / "a", "text"), Error);
  CHECK(folder.entries() == 1);
}

TEST_CASE("errno gives the reason if no file can be made") {
  const TemporaryFolder folder;
  const UnnamedFile file(folder / "none/a");
  const int error = errno;
  CHECK_FALSE(file.is_open());
  CHECK(error == ENOENT);
  CHECK(why_unwritable(folder / "none/a") == "No such file or directory");
  CHECK(why_unwritable(folder / "a").empty());
  CHECK(folder.entries() == 0);
}

}  // namespace kolo::posix
