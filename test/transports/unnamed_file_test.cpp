// Files that get their name once they are whole, on file systems that have files without one and on
// those that have not.
#include "transports/posix/unnamed_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/posix/whole_file.h"

namespace kolo::posix {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "kolo-files-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  std::string name(const std::string& file) const { return (path_ / file).string(); }
  auto files() const { return std::distance(fs::directory_iterator(path_), {}); }

 private:
  fs::path path_;
};

std::string contents(const std::string& name) {
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const UnnamedFile& file, const std::string& text) {
  REQUIRE(file.is_open());
  REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("a file that is being written has no name") {
  const Folder folder;
  UnnamedFile file(folder.name("a"));
  write(file, "whole");
  if (folder.files() != 0) {
    WARN("skipped: the folder of temporary files has no files without a name");
    return;
  }
  CHECK(file.link(folder.name("a")) == 0);
  CHECK(contents(folder.name("a")) == "whole");
  CHECK(folder.files() == 1);
}

TEST_CASE("an unnamed file that gets no name leaves nothing") {
  const Folder folder;
  for (const bool can_be_unnamed : {true, false}) {
    write(UnnamedFile(folder.name("a"), can_be_unnamed), "half");
    CHECK(folder.files() == 0);
  }
}

TEST_CASE("an unnamed file is linked where there is none, and replaces one") {
  for (const bool can_be_unnamed : {true, false}) {
    INFO(can_be_unnamed);
    const Folder folder;
    std::ofstream(folder.name("a")) << "older";
    {
      UnnamedFile file(folder.name("a"), can_be_unnamed);
      write(file, "newer");
      CHECK(file.link(folder.name("a")) == EEXIST);
      CHECK(contents(folder.name("a")) == "older");
      CHECK(file.link(folder.name("b")) == 0);
      CHECK(contents(folder.name("b")) == "newer");
      CHECK(file.replace(folder.name("a")) == 0);
      CHECK(contents(folder.name("a")) == "newer");
    }
    CHECK(folder.files() == 2);
    CHECK(fs::status(folder.name("a")).permissions() == fs::perms{0644});
  }
}

TEST_CASE("an unnamed file replaces nothing where it cannot, and leaves nothing") {
  const Folder folder;
  fs::create_directory(folder.name("a"));
  for (const bool can_be_unnamed : {true, false}) {
    UnnamedFile file(folder.name("a"), can_be_unnamed);
    write(file, "text");
    CHECK(file.replace(folder.name("a")) == EISDIR);
    CHECK(file.replace(folder.name("none/a")) == ENOENT);
  }
  CHECK(folder.files() == 1);
  CHECK_THROWS_AS(write_whole(folder.name("a"), "text"), Error);
  CHECK(folder.files() == 1);
}

TEST_CASE("where no file can be made, errno says why") {
  const Folder folder;
  const UnnamedFile file(folder.name("none/a"));
  const int error = errno;
  CHECK_FALSE(file.is_open());
  CHECK(error == ENOENT);
  CHECK(why_unwritable(folder.name("none/a")) == "No such file or directory");
  CHECK(why_unwritable(folder.name("a")).empty());
  CHECK(folder.files() == 0);
}

}  // namespace kolo::posix
