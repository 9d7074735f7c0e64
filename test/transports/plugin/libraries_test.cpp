// Transport libraries given by path: an unusable or outdated library is reported with a remedy, and
// no attempt hangs.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "test/support/catch.h"
#include "test/support/temporary_folder.h"
#include "transports/plugin/registration.h"
#include "transports/registry.h"

using namespace kolo;
using Catch::Matchers::StartsWith;
using kolo::test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

std::string complaint(const std::string& path) {
  try {
    resolve_transport(path);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the error for an unusable library gives the path, the reason and a remedy") {
  const TemporaryFolder folder;
  const std::string missing = folder / "libmissing.so";
  CHECK(complaint(missing) == "the transport " + missing +
                                  ": it cannot be loaded: No such file or directory; give the path "
                                  "of a shared library that was built for this machine, with all "
                                  "that it links (ldd -r names what is missing)");
  const std::string text = folder / "text.so";
  std::ofstream(text) << "not a library\n";
  CHECK_THAT(complaint(text), StartsWith("the transport " + text + ": it cannot be loaded: ") &&
                                  ContainsSubstring("give the path"));
  CHECK_THAT(complaint(folder / "."), ContainsSubstring("it is not a file"));
  const std::string pipe = folder / "pipe.so";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THAT(complaint(pipe), ContainsSubstring("it is not a file"));
}

TEST_CASE(
    "a library without the entry function, of another version or without required functions is "
    "refused") {
  CHECK_THAT(complaint(KOLO_NO_PLUGIN),
             ContainsSubstring("has no function kolo_transport_plugin, so it is not a transport"));
  CHECK_THAT(complaint(KOLO_OTHER_VERSION),
             ContainsSubstring("its table is of version 1000, and this kolo speaks version 2"));
  CHECK_THAT(complaint(KOLO_HALF_A_PLUGIN),
             ContainsSubstring("its table lacks destroy, channel, progress"));
}

TEST_CASE("the error for a library with an undefined symbol names the symbol") {
  CHECK_THAT(complaint(KOLO_UNDEFINED),
             ContainsSubstring("it cannot be loaded: ") && ContainsSubstring("nobody_has_this"));
}

TEST_CASE("a path has a slash: the error for a bare file name says so") {
  CHECK(is_from_outside("./libx.so"));
  CHECK_FALSE(is_from_outside("libx.so"));
  CHECK_THAT(complaint("libx.so"), StartsWith("unknown transport 'libx.so': this build has ") &&
                                       ContainsSubstring("has a slash: ./libx.so"));
}

TEST_CASE("the error for a bad library in KOLO_TRANSPORT names the variable") {
  ::setenv("KOLO_TRANSPORT", "/nowhere/libx.so", 1);
  const std::string said = complaint("auto");
  ::unsetenv("KOLO_TRANSPORT");
  CHECK_THAT(said, StartsWith("KOLO_TRANSPORT: the transport /nowhere/libx.so: "));
}
