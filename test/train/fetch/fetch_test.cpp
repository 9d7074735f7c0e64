// fetch(): downloads from local files (file://), checks, and never leaves a part of a file.
#include "train/fetch/fetch.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "test/support/catch.h"
#include "test/support/temporary_folder.h"
#include "train/data/dataset.h"
#include "train/fetch/child_program.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// A folder `source` with files to download, and a folder `target`.
struct Places {
  test::TemporaryFolder folder;
  fs::path source = folder.path() / "source";
  fs::path target = folder.path() / "some data/here";

  RemoteDataset dataset(std::vector<RemoteFile> files) const {
    return {"mnist", "file://" + source.string() + "/", std::move(files)};
  }
  std::string refusal(const std::vector<RemoteFile>& files) const {
    try {
      fetch(dataset(files), target.string());
    } catch (const FetchError& error) {
      CHECK(error.exit_code() == 1);
      return error.what();
    }
    return "";
  }
};

const RemoteFile kHello{"hello.gz", "5d41402abc4b2a76b9719d911017c592", ""};  // of "hello"
const RemoteFile kWorld{"world.gz", "7d793037a0760186574b0282f2f435e7", ""};  // of "world"

bool has_no_curl() {
  if (run_child({"curl", "--version"}).exit_code == 0) return false;
  WARN("skipped: there is no curl");
  return true;
}

TEST_CASE("fetch downloads the files that are missing, into a new folder") {
  if (has_no_curl()) return;
  const Places places;
  write(places.source / "hello.gz", "hello");
  write(places.source / "world.gz", "world");
  fetch(places.dataset({kHello}), places.target.string());
  CHECK(text_of(places.target / "hello.gz") == "hello");
  fs::remove(places.source / "hello.gz");  // so that it cannot be downloaded again
  fetch(places.dataset({kHello, kWorld}), places.target.string());
  CHECK(text_of(places.target / "world.gz") == "world");
  CHECK(names_in(places.target) == std::set<std::string>{"hello.gz", "world.gz"});
}

TEST_CASE("fetch keeps nothing of a file that is missing or has another checksum") {
  if (has_no_curl()) return;
  const Places places;
  CHECK_THAT(places.refusal({kHello}), ContainsSubstring("hello.gz cannot be downloaded: curl "));
  write(places.source / "hello.gz", "hellO");
  CHECK_THAT(places.refusal({kHello}),
             ContainsSubstring(", but 5d41402abc4b2a76b9719d911017c592 was expected"));
  CHECK(names_in(places.target).empty());
}

TEST_CASE("fetch leaves a file alone that exists with another checksum") {
  const Places places;
  write(places.target / "hello.gz", "my own");
  CHECK_THAT(places.refusal({kHello}), ContainsSubstring("/hello.gz' exists, but its MD5 is "));
  CHECK(text_of(places.target / "hello.gz") == "my own");
}

TEST_CASE("fetch unpacks an archive completely, or not at all") {
  if (has_no_curl()) return;
  const Places places;
  write(places.source / "batches/data.bin", "bytes");
  const std::string archive = (places.source / "all.tar.gz").string();
  REQUIRE(run_child({"tar", "-c", "-z", "-f", archive, "-C", places.source.string(), "batches"})
              .exit_code == 0);
  RemoteFile file{"all.tar.gz", run_child({"md5sum", archive}).output.substr(0, 32), "batches"};
  fetch(places.dataset({file}), places.target.string());
  CHECK(text_of(places.target / "batches/data.bin") == "bytes");
  CHECK(names_in(places.target) == std::set<std::string>{"batches"});
  fs::remove(archive);
  fetch(places.dataset({file}), places.target.string());  // it exists
  fs::remove_all(places.target / "batches");
  write(archive, "hello");
  file.md5 = kHello.md5;
  CHECK_THAT(places.refusal({file}), ContainsSubstring("cannot be unpacked: tar failed with"));
  CHECK(names_in(places.target).empty());
}

TEST_CASE("fetch refuses a folder that is a file") {
  const Places places;
  write(places.target, "a file");
  CHECK_THROWS_AS(fetch(places.dataset({kHello}), places.target.string()), DataError);
}

TEST_CASE("a child program's output and exit code are those of the program") {
  const ChildResult result = run_child({"sh", "-c", "echo one; exit 3"});
  CHECK(result.output == "one\n");
  CHECK(result.exit_code == 3);
  CHECK(run_child({"/no/such/program"}).exit_code == kProgramNotFound);
  CHECK(run_child({"sh", "-c", "kill -INT $$"}).exit_code == 130);
}

}  // namespace
}  // namespace kolo::train
