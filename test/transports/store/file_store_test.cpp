// Files that cannot hold a store.
#include <sys/resource.h>
#include <sys/stat.h>
#include <csignal>
#include <filesystem>
#include <string>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "transports/error.h"
#include "transports/rendezvous.h"

using namespace kolo;
using namespace kolo::test;

namespace {

// Simulates a full disk by RLIMIT_FSIZE: no file can grow beyond so many bytes.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit full{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*const handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

// Blocks of the disk that the file takes, in bytes.
std::int64_t disk_bytes(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return std::int64_t{512} * status.st_blocks;
}

}  // namespace

TEST_CASE("the error for an unusable store file names it and a remedy, and leaves no file behind") {
  CHECK_THROWS_WITH(open_file_store("/dev/null", 2, in_seconds(20)),
                    ContainsSubstring("/dev/null is a pipe or a device") &&
                        ContainsSubstring("in a folder that all ranks can write to"));
  CHECK_THROWS_WITH(open_file_store("/no/such/folder/store", 2, in_seconds(20)),
                    ContainsSubstring("/no/such/folder/store: No such file or directory; name"));
  const TemporaryFile file;
  REQUIRE_FALSE(std::filesystem::exists(file.path()));
  std::string said = "nothing";
  try {
    const FullDisk disk(0);
    open_file_store(file.path(), 2, in_seconds(20));
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK_THAT(said, ContainsSubstring("cannot write " + file.path() + ": File too large"));
  CHECK_FALSE(std::filesystem::exists(file.path()));
}

TEST_CASE("the failure of a rank that finds the disk full reaches the others") {
  const TemporaryFile file;
  const auto a = open_file_store(file.path(), 2, in_seconds(20));
  const auto b = open_file_store(file.path(), 2, in_seconds(20));
  std::string said = "nothing";
  {
    const FullDisk disk(std::filesystem::file_size(file.path()));
    CHECK_THROWS_AS(a->set("key", "value"), Error);
    said = a->post_failure("rank 0: no space left on the disk");
  }
  CHECK(said == "rank 0: no space left on the disk");
  CHECK(b->failure() == said);
}

TEST_CASE("a store's file stays small while keys come and go, for all that have it open") {
  const TemporaryFile file;
  const auto a = open_file_store(file.path(), 2, in_seconds(20));
  const auto b = open_file_store(file.path(), 2, in_seconds(20));
  a->join(0, "world", 2);
  a->set("stays", "value");
  CHECK(a->add("counter", 7) == 7);
  const std::string large(20'000, 'x');
  for (int i = 0; i < 200; ++i) {
    const std::string prefix = std::to_string(i) + "/";
    a->set(prefix + "key", large);
    a->retire(prefix, 2);
    if (i % 3 == 0) CHECK(b->try_get(prefix + "key") == large);
    b->retire(prefix, 2);
  }
  CHECK(disk_bytes(file.path()) < 1'000'000);  // of 4 MB written
  const auto c = open_file_store(file.path(), 2, in_seconds(20));
  for (const auto& store : {a, b, c}) {
    CHECK(store->try_get("stays") == "value");
    CHECK_FALSE(store->try_get("199/key"));
  }
  CHECK(c->add("counter", 1) == 8);
  CHECK_FALSE(c->failure());
  a->leave();
}
