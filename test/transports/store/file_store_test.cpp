// Files that cannot hold a store.
#include <sys/resource.h>
#include <csignal>
#include <filesystem>
#include <string>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "transports/error.h"
#include "transports/rendezvous.h"

using namespace kolo;
using namespace kolo::test;

TEST_CASE("the error for an unusable store file names it and a remedy, and leaves no file behind") {
  CHECK_THROWS_WITH(open_file_store("/dev/null", 2, in_seconds(20)),
                    ContainsSubstring("/dev/null is a pipe or a device") &&
                        ContainsSubstring("in a folder that all ranks can write to"));
  CHECK_THROWS_WITH(open_file_store("/no/such/folder/store", 2, in_seconds(20)),
                    ContainsSubstring("/no/such/folder/store: No such file or directory; name"));
  // Simulates a full disk by RLIMIT_FSIZE: every write would make the file too long.
  const TemporaryFile file;
  REQUIRE_FALSE(std::filesystem::exists(file.path()));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
  std::string said = "nothing";
  try {
    open_file_store(file.path(), 2, in_seconds(20));
  } catch (const Error& error) {
    said = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(said, ContainsSubstring("cannot write " + file.path() + ": File too large"));
  CHECK_FALSE(std::filesystem::exists(file.path()));
}
